"""Databases that servers of older versions left behind when they were killed: today's server opens and continues them.

The dumps in tests/data were made by `pg_dump --inserts`. Each has a workflow that was done, and one of five tasks, of which
the first was done, the second had failed once, and the third was assigned to a client.
"""

import gzip
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer
from serving_programs import LightClients, ServingProgram, Speaker, check_once, wait_for

from eligo.stores.database import newest
from eligo.stores.service_postgres import STEPS

pytest_plugins = ["postgres_fixtures"]

DATA = Path(__file__).parent.parent / "data"
#: by the version of the schema: the client, and its leases of the first task, which it has delivered, and of the third
LEASES = {
    2: ("c-4b6e4b951de9", "w-9ed6a41aef.1.82bb802ac27364d9", "w-9ed6a41aef.3.ef1ac27e456a5c64"),
    4: ("c-1802986fec4b", "w-769c0d288d.1.1a6ea61828feb3b6", "w-769c0d288d.3.dbe620fe42cab7ce"),
}


def schema_of(where: str) -> int:
    with psycopg.connect(where) as database:
        row = database.execute("SELECT max(version) FROM eligo_schema").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("version", LEASES)
def test_a_database_of_an_older_server_is_migrated_and_its_workflow_continues(
    version: int, postgres: PostgresServer, tmp_path: Path
) -> None:
    where, (client, delivered, assigned) = postgres.new_database(), LEASES[version]
    with psycopg.connect(where, autocommit=True) as database:
        database.execute(gzip.decompress((DATA / f"postgres_of_version_{version}.sql.gz").read_bytes()))
    assert schema_of(where) == version
    workflow = delivered.partition(".")[0]
    server = ServingProgram(where, tmp_path)
    try:
        assert schema_of(where) == newest(STEPS) > version
        listed = server.call("GET", "/v1/workflows")["workflows"]
        assert [(row["name"], row["state"], row["counts"]["done"]) for row in listed] == [
            ("half", "running", 1),
            ("ended", "done", 2),
        ]
        results = [
            {"lease": delivered, "outcome": "done", "code": 0, "tail": "ok"},
            {"lease": assigned, "outcome": "done"},
        ]
        with closing(Speaker(server, client)) as speaker:
            assert speaker.call("POST", "/v1/deliver", {"results": results})["answers"] == ["accepted", "accepted"]
        clients = LightClients([server], 1)  # two would run copies of overdue tasks
        wait_for([server], [workflow], 60)
        clients.stop()
        attempts = server.call("GET", f"/v1/workflows/{workflow}/attempts")["attempts"]
    finally:
        server.end()
    assert [(row["task"], row["attempt"], row["answer"], row["failure"]) for row in attempts] == [
        ("first", 1, "accepted", None),
        ("second", 1, "failed", "exit code 3"),
        ("third", 1, "accepted", None),
        ("second", 2, "accepted", None),
        ("fourth", 1, "accepted", None),
        ("last", 1, "accepted", None),
    ]
    check_once(where, {workflow: 5}, [delivered, assigned, *clients.accepted])
