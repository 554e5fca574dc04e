/* A second checker of saved plans: written from docs/reference/proofs.md alone, sharing nothing with the first.

   usage: check DAG PLAN
   exit code: 0 the plan holds, 1 it does not, 2 it cannot be checked here (malformed, too large, or of an unknown kind)

   DAG is a workflow in eligo's own JSON, PLAN what `eligo plan --save` writes. The answer is that of `eligo verify`, in the
   same words. Whatever is not checked is named and refused. All sums are of 64 bits; larger integers are refused. */

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long long I;
typedef unsigned long long U;
typedef __int128 Wide;

#define NEVER (-(1LL << 40)) /* below every reachable value */
#define LARGEST (1LL << 62)
#define MOST_NAME 200
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define NEW(type, count) ((type *)take((count), sizeof(type)))

/* Answers */

static const char *instead; /* said in place of any reason, if set */

static void cannot(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fputs("cannot be checked here: ", stderr);
    vfprintf(stderr, format, rest);
    fputs("\n", stderr);
    va_end(rest);
    exit(2);
}

static void refute(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fputs("Not valid: the proof does not hold: ", stdout);
    if (instead) fputs(instead, stdout);
    else vprintf(format, rest);
    fputs(".\n", stdout);
    va_end(rest);
    exit(1);
}

#define require(condition, ...) do { if (!(condition)) refute(__VA_ARGS__); } while (0)
#define expect(condition, ...) do { if (!(condition)) cannot(__VA_ARGS__); } while (0)

/* Memory: all blocks hang together, and what is not dropped is left to the end of the process. */

typedef struct Block { struct Block *next, *back; } Block;
static Block blocks = {&blocks, &blocks};

static void *take(I count, size_t size) {
    expect(count >= 0 && (U)count < (1ULL << 36) / size, "too large");
    Block *block = calloc(1, sizeof(Block) + (size_t)MAX(count, 1) * size);
    expect(block != NULL, "not enough memory");
    block->next = blocks.next, block->back = &blocks;
    blocks.next->back = block, blocks.next = block;
    return block + 1;
}

static void drop(void *p) {
    if (!p) return;
    Block *block = (Block *)p - 1;
    block->back->next = block->next, block->next->back = block->back;
    free(block);
}

static void *grow(void *p, I used, I count, size_t size) {
    void *larger = take(count, size);
    if (used) memcpy(larger, p, (size_t)used * size);
    drop(p);
    return larger;
}

/* JSON */

typedef enum { NONE, FLAG, WHOLE, REAL, TEXT, LIST, OBJECT } Type;
typedef struct Value Value;
struct Value { Type type; I size, whole; double real; char *text, **keys; Value *items; };

static const char *json;

static void space(void) { while (*json && strchr(" \t\r\n", *json)) json++; }

static unsigned hex4(void) {
    unsigned code = 0;
    for (int i = 0; i < 4; i++, json++) {
        const char *digits = "0123456789abcdefABCDEF", *found = *json ? strchr(digits, *json) : NULL;
        expect(found != NULL, "the JSON has a wrong escape");
        code = code * 16 + (unsigned)(found - digits > 15 ? found - digits - 6 : found - digits);
    }
    return code;
}

static char *put_code(char *out, unsigned code) {
    if (code < 0x80) return *out++ = (char)code, out;
    if (code >= 0x10000) *out++ = (char)(0xf0 | code >> 18), *out++ = (char)(0x80 | (code >> 12 & 63));
    else if (code >= 0x800) *out++ = (char)(0xe0 | code >> 12);
    if (code >= 0x800) *out++ = (char)(0x80 | (code >> 6 & 63));
    else *out++ = (char)(0xc0 | code >> 6);
    return *out++ = (char)(0x80 | (code & 63)), out;
}

static char *read_text(void) {
    const char *end = ++json;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    expect(*end == '"', "the JSON has a text without an end");
    char *text = NEW(char, end - json + 1), *out = text;
    while (*json != '"') {
        expect((unsigned char)*json >= 32, "the JSON has a control character in a text");
        if (*json != '\\') { *out++ = *json++; continue; }
        const char *plain = "\"\\/bfnrt", *found = strchr(plain, *++json);
        if (found && *found) { *out++ = "\"\\/\b\f\n\r\t"[found - plain], json++; continue; }
        expect(*json++ == 'u', "the JSON has a wrong escape");
        unsigned code = hex4();
        if (code >> 10 == 0x36 && json[0] == '\\' && json[1] == 'u') {
            json += 2;
            unsigned low = hex4();
            expect(low >> 10 == 0x37, "the JSON has half a character");
            code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        }
        expect(code && code >> 11 != 0x1b, "the JSON has half a character, or a null character");
        out = put_code(out, code);
    }
    json++;
    return text;
}

static Value read_number(void) {
    const char *p = json + (*json == '-');
    expect(*p >= '0' && *p <= '9' && !(*p == '0' && p[1] >= '0' && p[1] <= '9'), "this is not JSON: %.20s", json);
    p += strspn(p, "0123456789");
    Value value = {.type = strchr(".eE", *p) && *p ? REAL : WHOLE};
    char *end;
    if (value.type == REAL) {
        if (*p == '.') expect(p[1] >= '0' && p[1] <= '9', "this is not JSON: %.20s", json);
        value.real = strtod(json, &end);
    } else {
        expect(p - json <= 19, "an integer has more than 19 characters");
        value.whole = strtoll(json, &end, 10);
        expect(value.whole != LLONG_MAX && value.whole != LLONG_MIN, "an integer has more than 63 bits");
        value.real = (double)value.whole;
    }
    json = end;
    return value;
}

static Value read_value(int depth);

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static Value read_items(int depth, int object) {
    Value value = {.type = object ? OBJECT : LIST};
    I room = 4;
    value.items = NEW(Value, room);
    if (object) value.keys = NEW(char *, room);
    json++, space();
    for (char end = object ? '}' : ']'; *json != end; space()) {
        if (value.size) { expect(*json++ == ',', "the JSON lacks a comma"); space(); }
        if (value.size == room) {
            value.items = grow(value.items, room, 2 * room, sizeof(Value));
            if (object) value.keys = grow(value.keys, room, 2 * room, sizeof(char *));
            room *= 2;
        }
        if (object) {
            expect(*json == '"', "the JSON lacks a key");
            value.keys[value.size] = read_text();
            space();
            expect(*json++ == ':', "the JSON lacks a colon");
        }
        value.items[value.size++] = read_value(depth + 1);
    }
    json++;
    if (object && value.size) {
        char **sorted = grow(NULL, 0, value.size, sizeof(char *));
        memcpy(sorted, value.keys, (size_t)value.size * sizeof(char *));
        qsort(sorted, (size_t)value.size, sizeof(char *), compare_texts);
        for (I i = 1; i < value.size; i++) expect(strcmp(sorted[i - 1], sorted[i]), "the key '%s' is twice", sorted[i]);
        drop(sorted);
    }
    return value;
}

static Value read_value(int depth) {
    expect(depth < 500, "the JSON is nested too deeply");
    space();
    if (*json == '{' || *json == '[') return read_items(depth, *json == '{');
    if (*json == '"') return (Value){.type = TEXT, .text = read_text()};
    static const struct { const char *word; Type type; I whole; } words[] = {{"true", FLAG, 1}, {"false", FLAG, 0}, {"null", NONE, 0}};
    for (int i = 0; i < 3; i++)
        if (!strncmp(json, words[i].word, strlen(words[i].word))) {
            json += strlen(words[i].word);
            return (Value){.type = words[i].type, .whole = words[i].whole};
        }
    return read_number();
}

static Value parse(const char *text) {
    json = text;
    Value value = read_value(0);
    space();
    expect(!*json, "the JSON goes on after its end");
    return value;
}

static Value read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    expect(file != NULL, "no file %s", path);
    I size = 0, room = 1 << 16;
    char *text = NEW(char, room);
    for (size_t got; (got = fread(text + size, 1, (size_t)(room - size - 1), file)) > 0;) {
        size += (I)got;
        if (room - size < 2) text = grow(text, size, 2 * room, 1), room *= 2;
    }
    fclose(file);
    expect((I)strlen(text) == size, "%s has a null character", path);
    return parse(text);
}

static Value *get(const Value *object, const char *key) { /* NULL if it is not there, or null */
    for (I i = 0; object->type == OBJECT && i < object->size; i++)
        if (!strcmp(object->keys[i], key)) return object->items[i].type == NONE ? NULL : object->items + i;
    return NULL;
}

static I whole(const Value *object, const char *key) { return get(object, key)->whole; }
static int rules(const Value *proof, const char *rule) { return !strcmp(get(proof, "rule")->text, rule); }

/* The structure of a plan: i, f, b, s, o, n are kinds of values; @x is the structure x; a key with ? is optional. */

static const char *STRUCTURE =
    "{\"plan\":{\"order\":[\"s\"],\"profile\":[\"i\"],\"verdict\":\"s\",\"method\":\"s\",\"upper_bound\":[\"i\"],"
    "\"area\":\"i\",\"area_bound\":\"i\",\"proof\":\"@top\",\"fingerprint\":\"s\",\"tasks\":\"i\",\"arcs\":\"i\","
    "\"shortcuts\":\"i\",\"blocks\":\"i\",\"seconds\":\"f\",\"cut_short?\":\"b\",\"schema?\":\"i\",\"average?\":\"f\","
    "\"average_first_come?\":\"f\",\"gain?\":\"f\",\"orders?\":[{\"name\":\"s\",\"order\":[\"s\"],\"average\":\"f\","
    "\"share\":\"f\",\"polls?\":[\"f\"],\"rounds?\":[\"f\"],\"polls_without_seconds?\":[\"f\"],"
    "\"rounds_without_seconds?\":[\"f\"],\"makespan?\":\"f\",\"peak?\":\"i\"}],\"used?\":\"s\",\"workers?\":\"is\","
    "\"makespan?\":\"fn\",\"bound?\":\"fn\",\"certificate?\":\"on\",\"seconds_from?\":\"sn\",\"known?\":\"o\","
    "\"space?\":\"on\"},"
    "\"top\":{\"rule\":\"s\",\"order?\":[\"s\"]},\"proof\":{\"rule\":\"s\",\"order\":[\"s\"]},"
    "\"shares\":{\"modules\":[{\"tasks\":[\"s\"],\"renders\":[\"s\"],\"p\":\"i\",\"q\":\"i\"}],"
    "\"flow\":[[\"s\",\"s\",\"i\"]]},"
    "\"probe\":{\"task\":\"s\",\"executed\":\"@shares\",\"waiting\":\"@shares\"},"
    "\"how\":{\"order\":[\"s\"],\"executed_first?\":[\"s\"],\"alike\":[{\"tasks\":[\"s\"],\"swaps\":[[[\"s\",\"s\"]]]}]},"
    "\"chain\":{\"segments?\":[{\"rule\":\"s\",\"first\":\"i\",\"last\":\"i\"}]},\"units\":{\"units\":[\"i\"]},"
    "\"exact\":{\"conflict?\":[\"i\"]},\"sum\":{\"parts\":[\"@proof\"],\"modules?\":{\"rule\":\"s\"}},"
    "\"bound\":{\"probes?\":[\"@probe\"],\"area?\":\"i\",\"pieces?\":[\"@proof\"]},"
    "\"elimination\":{\"elimination\":\"@how\",\"refuted?\":\"b\",\"area?\":\"i\",\"swaps?\":[[[\"s\",\"s\"]]],"
    "\"pieces?\":[\"@proof\"],\"marked?\":{\"tasks\":[\"s\"],\"order\":[\"s\"],\"executed_first\":[\"s\"]}},"
    "\"modules\":{\"shares\":\"@shares\",\"blocks\":\"b\",\"modules\":[\"@proof\"],\"elimination?\":\"@how\","
    "\"probes?\":[\"@probe\"],\"split?\":\"b\",\"better?\":[\"s\"]},"
    "\"space\":{\"bytes\":\"i\",\"first\":\"b\",\"cases\":[{\"task\":\"s\",\"files\":[[\"s\",\"s\",\"i\"]],"
    "\"returned\":[[\"s\",\"s\",\"i\"]]}]}}";

static Value structure;

static Value *kind_of(const Value *kind, const Value *more, const char *key) {
    for (int pass = 0; pass < 2; pass++, kind = more)
        for (I i = 0; kind && i < kind->size; i++) {
            size_t length = strcspn(kind->keys[i], "?");
            if (strlen(key) == length && !strncmp(kind->keys[i], key, length)) return kind->items + i;
        }
    return NULL;
}

static void fit(const Value *value, const Value *kind, const char *where) {
    if (kind->type == TEXT && kind->text[0] == '@') kind = get(&structure, kind->text + 1);
    if (kind->type == OBJECT) {
        expect(value->type == OBJECT, "'%s' must be an object", where);
        const Value *more = NULL, *rule = get(value, "rule");
        static const char *known = "chain units exact sum bound elimination modules";
        if (get(kind, "rule")) {
            more = rule && rule->type == TEXT && strstr(known, rule->text) ? get(&structure, rule->text) : NULL;
            expect(more != NULL, "'%s' has an unknown rule", where);
        }
        for (const Value *part = kind; part; part = part == kind ? more : NULL)
            for (I i = 0; i < part->size; i++) {
                int there = strchr(part->keys[i], '?') != NULL;
                for (I j = 0; !there && j < value->size; j++) there = !strcmp(value->keys[j], part->keys[i]);
                expect(there, "'%s' needs the key '%s'", where, part->keys[i]);
            }
        for (I i = 0; i < value->size; i++) {
            const Value *own = kind_of(kind, more, value->keys[i]);
            expect(own != NULL, "'%s' has the unknown key '%s'", where, value->keys[i]);
            fit(value->items + i, own, value->keys[i]);
        }
    } else if (kind->type == LIST) {
        expect(value->type == LIST && (kind->size == 1 || kind->size == value->size), "'%s' must be a list", where);
        for (I i = 0; i < value->size; i++) fit(value->items + i, kind->items + (kind->size == 1 ? 0 : i), where);
    } else {
        static const char kinds[] = {[NONE] = 'n', [FLAG] = 'b', [WHOLE] = 'i', [REAL] = 'f', [TEXT] = 's', [LIST] = 'l', [OBJECT] = 'o'};
        int right = strchr(kind->text, kinds[value->type]) || (value->type == WHOLE && strchr(kind->text, 'f'));
        expect(right, "'%s' is of the wrong kind", where);
    }
}

/* Names */

static char **names;
static I count, *slots, slot_count;

static U hash_text(const char *text) {
    U hash = 1469598103934665603ULL;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
    return hash ^ hash >> 29;
}

static I *slot_of(const char *name) {
    U i = hash_text(name) & (U)(slot_count - 1);
    while (slots[i] >= 0 && strcmp(names[slots[i]], name)) i = (i + 1) & (U)(slot_count - 1);
    return slots + i;
}

static void make_slots(I most) {
    for (slot_count = 16; slot_count < 2 * most;) slot_count *= 2;
    slots = NEW(I, slot_count), names = NEW(char *, most);
    for (I i = 0; i < slot_count; i++) slots[i] = -1;
}

static int add_name(char *name) {
    I *slot = slot_of(name);
    if (*slot >= 0) return 0;
    names[*slot = count++] = name;
    return 1;
}

static const char *quoted(const char *name, int cut) { /* as Python prints it; cut in the middle if asked */
    static char rings[4][4 * MOST_NAME + 400];
    static int ring;
    char *out = rings[ring = (ring + 1) % 4], *begin = out;
    char text[MOST_NAME + 100];
    I length = 0, characters = 0;
    for (const char *p = name; *p; p++) characters += (*p & 0xc0) != 0x80;
    if (cut && characters > 60) {
        const char *p = name, *tail = name;
        I head = 0;
        for (; head < 30 || (*p & 0xc0) == 0x80; p++) if ((*p & 0xc0) != 0x80) head++;
        for (I skip = 0; skip < characters - 10 || (*tail & 0xc0) == 0x80; tail++) skip += (*tail & 0xc0) != 0x80;
        length = snprintf(text, sizeof text, "%.*s...%s", (int)(p - name), name, tail);
    } else length = snprintf(text, sizeof text, "%s", name);
    char mark = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    *out++ = mark;
    for (I i = 0; i < MIN(length, (I)sizeof text - 1); i++) {
        if (text[i] == '\\' || text[i] == mark) *out++ = '\\', *out++ = text[i];
        else if (text[i] == '\n' || text[i] == '\t' || text[i] == '\r')
            *out++ = '\\', *out++ = text[i] == '\n' ? 'n' : text[i] == '\t' ? 't' : 'r';
        else *out++ = text[i];
    }
    *out++ = mark, *out = 0;
    return begin;
}

static const char *commas(I number) {
    static char rings[4][40];
    static int ring;
    char digits[32], *out = rings[ring = (ring + 1) % 4], *begin = out;
    int length = snprintf(digits, sizeof digits, "%llu", number < 0 ? -(U)number : (U)number);
    if (number < 0) *out++ = '-';
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) *out++ = ',';
        *out++ = digits[i];
    }
    return *out = 0, begin;
}

/* Dags: the children of u are child[down[u]..down[u + 1] - 1], ascending; so are its parents; id gives names. */

typedef struct { I n, m, *down, *child, *up, *parent, *tail, *id, *at; } Dag;

static I number(const Dag *dag, const char *name) {
    I global = *slot_of(name);
    return global < 0 ? -1 : dag->at[global];
}

static const char *name_of(const Dag *dag, I v) { return names[dag->id[v]]; }
static I children(const Dag *dag, I v) { return dag->down[v + 1] - dag->down[v]; }
static I parents(const Dag *dag, I v) { return dag->up[v + 1] - dag->up[v]; }

static void fill_rows(I n, I m, const I *key, const I *value, I *ptr, I *rows) {
    memset(ptr, 0, (size_t)(n + 1) * sizeof(I));
    for (I i = 0; i < m; i++) ptr[key[i] + 1]++;
    for (I v = 0; v < n; v++) ptr[v + 1] += ptr[v];
    I *place = NEW(I, n + 1);
    memcpy(place, ptr, (size_t)(n + 1) * sizeof(I));
    for (I i = 0; i < m; i++) rows[place[key[i]]++] = value[i];
    drop(place);
}

static Dag make_dag(I n, I m, const I *tails, const I *heads, const I *id) { /* repeated arcs are one */
    Dag dag = {n, 0, NEW(I, n + 1), NEW(I, m), NEW(I, n + 1), NEW(I, m), NEW(I, m), NEW(I, n), NEW(I, count)};
    I *from = NEW(I, m), *to = NEW(I, m);
    fill_rows(n, m, heads, tails, dag.up, dag.parent);
    for (I v = 0, i = 0; v < n; v++)
        for (; i < dag.up[v + 1]; i++) from[i] = dag.parent[i], to[i] = v;
    fill_rows(n, m, from, to, dag.down, dag.child);
    for (I u = 0; u < n; u++)
        for (I i = dag.down[u]; i < dag.down[u + 1]; i++)
            if (i == dag.down[u] || dag.child[i] != dag.child[i - 1]) from[dag.m] = u, to[dag.m++] = dag.child[i];
    fill_rows(n, dag.m, from, to, dag.down, dag.child);
    fill_rows(n, dag.m, to, from, dag.up, dag.parent);
    memcpy(dag.tail, from, (size_t)dag.m * sizeof(I));
    for (I i = 0; i < count; i++) dag.at[i] = -1;
    for (I v = 0; v < n; v++) dag.id[v] = id[v], dag.at[id[v]] = v;
    drop(from), drop(to);
    return dag;
}

static void drop_dag(Dag *dag) {
    I *arrays[] = {dag->down, dag->child, dag->up, dag->parent, dag->tail, dag->id, dag->at};
    for (int i = 0; i < 7; i++) drop(arrays[i]);
}

static I *first_come(const Dag *dag) { /* tasks as they become ready, first in, first out */
    I *order = NEW(I, dag->n), *missing = NEW(I, dag->n), end = 0;
    for (I v = 0; v < dag->n; v++) if (!(missing[v] = parents(dag, v))) order[end++] = v;
    for (I i = 0; i < end; i++)
        for (I j = dag->down[order[i]]; j < dag->down[order[i] + 1]; j++)
            if (!--missing[dag->child[j]]) order[end++] = dag->child[j];
    expect(end == dag->n, "the workflow has a cycle");
    drop(missing);
    return order;
}

static int has_arc(const Dag *dag, I u, I v) {
    I low = dag->down[u], high = dag->down[u + 1];
    while (low < high) {
        I middle = (low + high) / 2;
        if (dag->child[middle] < v) low = middle + 1; else high = middle;
    }
    return low < dag->down[u + 1] && dag->child[low] == v;
}

static char *reached(const Dag *dag, const I *from, I size, int below) { /* marks: these and all below, or above */
    char *mark = NEW(char, dag->n);
    I *queue = NEW(I, dag->n), end = 0;
    for (I i = 0; i < size; i++) if (!mark[from[i]]) mark[from[i]] = 1, queue[end++] = from[i];
    const I *ptr = below ? dag->down : dag->up, *rows = below ? dag->child : dag->parent;
    for (I i = 0; i < end; i++)
        for (I j = ptr[queue[i]]; j < ptr[queue[i] + 1]; j++)
            if (!mark[rows[j]]) mark[rows[j]] = 1, queue[end++] = rows[j];
    drop(queue);
    return mark;
}

static I find(I *root, I v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
}

static void join(I *root, I u, I v) { /* the smallest member stands for all */
    u = find(root, u), v = find(root, v);
    if (u < v) root[v] = u; else root[u] = v;
}

static Dag read_dag(const Value *top) {
    const Value *tasks = get(top, "tasks"), *arcs = get(top, "arcs"), *nodes = get(top, "nodes");
    expect(top->type == OBJECT && (tasks || arcs) && !(tasks && arcs), "the workflow needs \"tasks\" or \"arcs\"");
    const Value *rows = tasks ? tasks : arcs, *listed = tasks ? tasks : nodes;
    expect(rows->type == LIST && (!listed || listed->type == LIST), "the workflow must list its tasks");
    make_slots((listed ? listed->size : 2 * rows->size) + 1);
    for (I i = 0; listed && i < listed->size; i++) {
        const Value *name = tasks ? get(listed->items + i, "name") : listed->items + i;
        expect(name && name->type == TEXT, "a task needs a name");
        expect(add_name(name->text), "the task '%s' is twice", name->text);
    }
    I m = 0, room = 16, *tails = NEW(I, room), *heads = NEW(I, room);
    for (I i = 0; i < rows->size; i++) {
        const Value *needs = tasks ? get(rows->items + i, "after") : rows->items + i;
        if (!needs) continue;
        expect(needs->type == LIST && (tasks || needs->size == 2), "an arc must be a pair");
        for (I j = 0; j < needs->size; j++) {
            expect(needs->items[j].type == TEXT, "an arc must name tasks");
            if (!listed) add_name(needs->items[j].text);
            I v = *slot_of(needs->items[j].text);
            expect(v >= 0, "there is no task '%s'", needs->items[j].text);
            if (!tasks && j) { heads[m++] = v; continue; }
            if (m + 1 >= room) tails = grow(tails, m, 2 * room, sizeof(I)), heads = grow(heads, m, 2 * room, sizeof(I)), room *= 2;
            tails[m] = v;
            if (tasks) heads[m++] = i;
        }
    }
    I *id = NEW(I, count);
    for (I v = 0; v < count; v++) id[v] = v;
    Dag dag = make_dag(count, m, tails, heads, id);
    drop(first_come(&dag)), drop(tails), drop(heads), drop(id);
    return dag;
}

/* The fingerprint: SHA-256 of all names, one per line, then the rows of children as 32-bit numbers, the low byte first. */

static uint32_t state[8], round_keys[64];
static unsigned char chunk[64];
static I hashed;

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void set_up_hash(void) { /* constants are the fractions of square and cube roots of primes, in integer arithmetic */
    for (int found = 0, p = 2; found < 64; p++) {
        int prime = 1;
        for (int d = 2; d * d <= p; d++) if (p % d == 0) prime = 0;
        if (!prime) continue;
        U cube = 0, square = 0;
        for (int bit = 36; bit >= 0; bit--) {
            unsigned __int128 a = cube | 1ULL << bit, b = square | 1ULL << bit;
            if (a * a * a <= (unsigned __int128)(unsigned)p << 96) cube = (U)a;
            if (b * b <= (unsigned __int128)(unsigned)p << 64) square = (U)b;
        }
        if (found < 8) state[found] = (uint32_t)square;
        round_keys[found++] = (uint32_t)cube;
    }
}

static void mix_chunk(void) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)chunk[4 * i] << 24 | (uint32_t)chunk[4 * i + 1] << 16 | (uint32_t)chunk[4 * i + 2] << 8 | chunk[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7]
            + (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_keys[i] + w[i];
        uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one, s[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

static void hash_byte(unsigned byte) {
    chunk[hashed++ % 64] = (unsigned char)byte;
    if (hashed % 64 == 0) mix_chunk();
}

static void fingerprint(const Dag *dag, char *out) {
    set_up_hash();
    for (I v = 0; v < dag->n; v++) {
        if (v) hash_byte('\n');
        for (const char *p = name_of(dag, v); *p; p++) hash_byte((unsigned char)*p);
    }
    for (I i = 0; i <= dag->n; i++) for (int b = 0; b < 32; b += 8) hash_byte((unsigned)(dag->down[i] >> b) & 255);
    for (I i = 0; i < dag->m; i++) for (int b = 0; b < 32; b += 8) hash_byte((unsigned)(dag->child[i] >> b) & 255);
    I bits = 8 * hashed;
    for (hash_byte(128); hashed % 64 != 56;) hash_byte(0);
    for (int b = 56; b >= 0; b -= 8) hash_byte((unsigned)(bits >> b) & 255);
    for (int i = 0; i < 4; i++) snprintf(out + 8 * i, 9, "%08x", state[i]);
}

/* Profiles: an array of the most that 0, 1, ..., steps executions render. */

typedef struct { I *at, steps; } Profile;

static Profile new_profile(I steps) { return (Profile){NEW(I, steps + 1), steps}; }

static I sum(Profile p) {
    I total = 0;
    for (I t = 0; t <= p.steps; t++) total += p.at[t];
    return total;
}

static Profile lower(Profile a, Profile b) {
    for (I t = 0; t <= a.steps; t++) a.at[t] = MIN(a.at[t], b.at[t]);
    return a;
}

static int same(Profile a, Profile b) { return a.steps == b.steps && !memcmp(a.at, b.at, (size_t)(a.steps + 1) * sizeof(I)); }

static Profile convolve(Profile a, Profile b) { /* a step is worth trying if one of the two has just risen */
    Profile best = new_profile(a.steps + b.steps);
    I rises[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (I i = 1; i <= (side ? b : a).steps; i++) rises[side] += (side ? b : a).at[i] > (side ? b : a).at[i - 1];
    Profile few = rises[0] < rises[1] ? a : b, other = rises[0] < rises[1] ? b : a;
    for (I t = 0; t <= best.steps; t++) best.at[t] = NEVER;
    for (I i = 0; i <= few.steps; i++)
        if (!i || few.at[i] > few.at[i - 1])
            for (I j = 0; j <= other.steps; j++) best.at[i + j] = MAX(best.at[i + j], few.at[i] + other.at[j]);
    for (I t = 1; t <= best.steps; t++) best.at[t] = MAX(best.at[t], best.at[t - 1]);
    return best;
}

static Profile convolve_all(Profile *parts, I size) {
    Profile all = new_profile(0);
    for (I i = 0; i < size; i++) {
        Profile next = convolve(all, parts[i]);
        drop(all.at), all = next;
    }
    return all;
}

typedef struct { I width, rise; } Side;

static int steeper(const void *a, const void *b) {
    Wide x = (Wide)((const Side *)a)->rise * ((const Side *)b)->width, y = (Wide)((const Side *)b)->rise * ((const Side *)a)->width;
    return (x < y) - (x > y);
}

static Profile convolve_hulls(Profile *parts, I size) { /* the sides of all concave hulls, the steepest first */
    I steps = 0, end = 0, done = 0;
    for (I i = 0; i < size; i++) steps += parts[i].steps;
    Side *sides = NEW(Side, steps);
    for (I i = 0; i < size; i++) {
        I begin = end;
        for (I t = 1; t <= parts[i].steps; t++) {
            Side side = {1, parts[i].at[t] - parts[i].at[t - 1]};
            for (; end > begin && (Wide)sides[end - 1].rise * side.width <= (Wide)side.rise * sides[end - 1].width; end--)
                side.width += sides[end - 1].width, side.rise += sides[end - 1].rise;
            sides[end++] = side;
        }
    }
    qsort(sides, (size_t)end, sizeof(Side), steeper);
    Profile all = new_profile(steps);
    for (I i = 0, next; i < end; i = next) { /* sides of one slope are one, rounded down only inside it */
        I width = 0, begin = all.at[done];
        for (next = i; next < end && !steeper(sides + i, sides + next); next++) width += sides[next].width;
        for (I s = 1; s <= width; s++) all.at[++done] = begin + (I)((Wide)s * sides[i].rise / sides[i].width);
    }
    drop(sides);
    return all;
}

static int below_series(Profile mixed, Profile a, Profile b) {
    int holds = 1;
    for (I t = 0; holds && t <= mixed.steps; t++)
        holds = mixed.at[t] <= (t <= a.steps ? a.at[t] : a.at[a.steps] + b.at[t - a.steps]);
    drop(mixed.at);
    return holds;
}

static int precedes(Profile a, Profile b) {
    Profile both[] = {a, b};
    return below_series(convolve_hulls(both, 2), a, b) || below_series(convolve(a, b), a, b);
}

static int too_long(I steps) { return steps > 14142; } /* its square is above 200,000,000 */

static Profile bound_by_parts(Profile *parts, I size) {
    I steps = 0;
    for (I i = 0; i < size; i++) steps += parts[i].steps;
    return too_long(steps) ? convolve_hulls(parts, size) : convolve_all(parts, size);
}

static int sweepable(Profile a, Profile b) { /* a path through the largest entries of all diagonals, corner to corner */
    Profile best = convolve(a, b);
    char *on = NEW(char, a.steps + 1);
    on[0] = 1;
    for (I t = 1; t <= best.steps; t++)
        for (I i = MIN(a.steps, t); i >= 0; i--)
            on[i] = (on[i] || (i && on[i - 1])) && t - i <= b.steps && a.at[i] + b.at[t - i] == best.at[t];
    int holds = on[a.steps];
    drop(on), drop(best.at);
    return holds;
}

/* Sets of items, twins being one */

typedef struct { I items, *weight; int *rendered; char *closed; } Sets;

static int same_row(const I *a, I a_size, const I *b, I b_size) {
    return a_size == b_size && !memcmp(a, b, (size_t)a_size * sizeof(I));
}

static int make_sets(const Dag *dag, int reversed, I most, Sets *sets) { /* 0 if there are more items */
    const I *down = reversed ? dag->up : dag->down, *up = reversed ? dag->down : dag->up;
    const I *child = reversed ? dag->parent : dag->child, *parent = reversed ? dag->child : dag->parent;
    I *item = NEW(I, dag->n), members[64], weights[64] = {0}, size = 0;
    for (I v = 0; v < dag->n; v++) {
        item[v] = -1;
        if (down[v] == down[v + 1]) continue;
        I i = 0;
        for (; i < size; i++) {
            I u = members[i];
            if (same_row(child + down[u], down[u + 1] - down[u], child + down[v], down[v + 1] - down[v])
                && same_row(parent + up[u], up[u + 1] - up[u], parent + up[v], up[v + 1] - up[v])) break;
        }
        if (i == most) return drop(item), 0;
        if (i == size) members[size++] = v;
        weights[item[v] = i]++;
    }
    U all = 1ULL << size, needs[64] = {0};
    *sets = (Sets){size, NEW(I, all), NEW(int, all), NEW(char, all)};
    for (I v = 0; v < dag->n; v++) {
        U need = 0;
        for (I j = up[v]; j < up[v + 1]; j++) need |= 1ULL << item[parent[j]];
        if (need) sets->rendered[need]++;
        if (need && item[v] >= 0) needs[item[v]] = need;
    }
    for (I i = 0; i < size; i++)
        for (U s = 0; s < all; s++) if (s >> i & 1) sets->rendered[s] += sets->rendered[s ^ 1ULL << i];
    for (U s = 0; s < all; s++) {
        sets->closed[s] = 1;
        for (I i = 0; i < size; i++)
            if (s >> i & 1) sets->weight[s] += weights[i], sets->closed[s] &= (needs[i] & ~s) == 0;
    }
    drop(item);
    return 1;
}

static void drop_sets(Sets *sets) { drop(sets->weight), drop(sets->rendered), drop(sets->closed); }

static Profile set_maxima(const Sets *sets) {
    U all = 1ULL << sets->items;
    Profile best = new_profile(sets->weight[all - 1]);
    for (U s = 0; s < all; s++)
        if (sets->closed[s]) best.at[sets->weight[s]] = MAX(best.at[sets->weight[s]], sets->rendered[s]);
    for (I t = 1; t <= best.steps; t++) best.at[t] = MAX(best.at[t], best.at[t - 1]);
    return best;
}

static I largest_sum(const Sets *sets, const char *steps) { /* over these steps, of any way to grow a closed set */
    U all = 1ULL << sets->items;
    I *best = NEW(I, all), *counted = NEW(I, sets->weight[all - 1] + 2);
    for (I t = 0; t <= sets->weight[all - 1]; t++) counted[t] = (t ? counted[t - 1] : 0) + steps[t];
    for (U s = 1; s < all; s++) {
        best[s] = NEVER;
        for (I i = 0; sets->closed[s] && i < sets->items; i++) {
            U before = s ^ 1ULL << i;
            if (!(s >> i & 1) || best[before] == NEVER) continue;
            I end = sets->weight[s], idle = counted[end - 1] - counted[sets->weight[before]];
            best[s] = MAX(best[s], best[before] + sets->rendered[before] * idle + sets->rendered[s] * steps[end]);
        }
    }
    I most = best[all - 1];
    drop(best), drop(counted);
    return most;
}

/* The maxima of one block */

static Profile even_tree(const Dag *block, I sources, I sinks, int *fits) {
    I d = -1, e = 0, least = LLONG_MAX, smaller = 0, even = 1;
    for (I v = 0; v < block->n; v++) {
        I out = children(block, v), in = parents(block, v);
        if (out) even = even && (d < 0 || d == out), d = out;
        if (in) e = MAX(e, in), least = MIN(least, in);
    }
    for (I v = 0; v < block->n; v++) smaller += parents(block, v) && parents(block, v) < e;
    Profile best = new_profile(sources);
    *fits = even || smaller <= 1;
    for (I t = 0; *fits && t <= sources; t++)
        best.at[t] = even ? t == sources ? sinks : t * (d - 1) : MAX(t - least + e - 1, 0) / (e - 1);
    return best;
}

static Profile top_of(Profile a, Profile b) {
    Profile best = new_profile(a.steps);
    for (I t = 0; t <= a.steps; t++) best.at[t] = MAX(a.at[t], b.at[t]);
    return best;
}

static Profile tree_maxima(const Dag *block) { /* one, two: a source idle, executed; a sink with any, with all parents */
    I n = block->n, *walk = NEW(I, n), *above = NEW(I, n), end = 1;
    Profile *one = NEW(Profile, n), *two = NEW(Profile, n);
    for (walk[0] = 0; !children(block, walk[0]);) walk[0]++;
    above[walk[0]] = -1;
    for (int pass = 0; pass < 2; pass++)
        for (I i = pass ? n - 1 : 0; pass ? i >= 0 : i < end; i += pass ? -1 : 1) {
            I v = walk[i], source = children(block, v) > 0;
            const I *rows = source ? block->child + block->down[v] : block->parent + block->up[v];
            Profile a = new_profile(0), b = new_profile(0);
            for (I j = 0; j < (source ? children(block, v) : parents(block, v)); j++) {
                I w = rows[j];
                if (w == above[v]) continue;
                if (!pass) { walk[end++] = w, above[w] = v; continue; }
                Profile x = one[w], y = two[w], more = new_profile(x.steps), either = top_of(x, y);
                for (I t = 0; t <= x.steps; t++) more.at[t] = source ? MAX(x.at[t], y.at[t] + 1) : y.at[t];
                Profile next = convolve(a, source ? x : either), other = convolve(b, more);
                I *gone[] = {a.at, b.at, x.at, y.at, more.at, either.at};
                for (int g = 0; g < 6; g++) drop(gone[g]);
                a = next, b = other;
            }
            if (!pass) { drop(a.at), drop(b.at); continue; }
            one[v] = a, two[v] = b;
            if (source) {
                one[v] = new_profile(a.steps + 1), two[v] = new_profile(a.steps + 1);
                for (I t = 0; t <= a.steps + 1; t++) one[v].at[t] = a.at[MIN(t, a.steps)], two[v].at[t] = t ? b.at[t - 1] : NEVER;
                drop(a.at), drop(b.at);
            }
        }
    Profile best = top_of(one[walk[0]], two[walk[0]]);
    drop(one[walk[0]].at), drop(two[walk[0]].at), drop(walk), drop(above), drop(one), drop(two);
    return best;
}

static int falling_order(const void *a, const void *b) {
    I x = *(const I *)a, y = *(const I *)b;
    return (x < y) - (x > y);
}

static Profile block_maxima(const Dag *block) {
    I s = 0, sinks = 0, plain = 1, widest = 0;
    for (I v = 0; v < block->n; v++) {
        s += children(block, v) > 0, sinks += parents(block, v) > 0;
        plain = plain && !(children(block, v) && parents(block, v));
        widest = MAX(widest, MAX(children(block, v), parents(block, v)));
    }
    Profile best = new_profile(s);
    if (plain && widest <= 2) { /* a path or a cycle */
        I lost = sinks < s || block->m == s + sinks;
        for (I t = 0; t < s; t++) best.at[t] = MAX(t - lost, 0);
        return best.at[s] = sinks, best;
    }
    int fits = 0, tree = plain && block->m == s + sinks - 1;
    if (tree) {
        drop(best.at), best = even_tree(block, s, sinks, &fits);
        if (fits) return best;
        if (s <= 3000) return drop(best.at), tree_maxima(block);
    }
    Sets sets;
    if (make_sets(block, 0, plain ? 24 : 20, &sets)) {
        drop(best.at), best = set_maxima(&sets), drop_sets(&sets);
    } else if (plain && make_sets(block, 1, 24, &sets)) { /* by the sources that may stay idle for j sinks */
        Profile dual = set_maxima(&sets);
        for (I t = 0; t <= s; t++)
            for (best.at[t] = dual.steps; s - dual.at[dual.steps - best.at[t]] > t;) best.at[t]--;
        drop(dual.at), drop_sets(&sets);
    } else {
        I *share = NEW(I, block->n), total = 0;
        for (I i = 0; i < block->m; i++) {
            I in = parents(block, block->child[i]);
            share[block->tail[i]] += ((1LL << 32) + in - 1) / in;
        }
        qsort(share, (size_t)block->n, sizeof(I), falling_order);
        for (I t = 1; t <= s; t++) total += share[t - 1], best.at[t] = MIN(total >> 32, sinks);
        drop(share);
    }
    return best;
}

/* A part: some nonsinks of a dag, numbered 0..k-1 in the order to be checked, then their other children */

typedef struct { Dag dag; I k, *block, *first, blocks; Profile cumulative; } Part;
typedef struct { Profile bound; I slack; int impossible; } Certified;

static Profile eligible(const Dag *dag, const I *place) { /* of a schedule; place of each task */
    for (I i = 0; i < dag->m; i++)
        require(place[dag->tail[i]] <= place[dag->child[i]], "not a schedule: %s comes before %s, which it depends on",
            quoted(name_of(dag, dag->child[i]), 1), quoted(name_of(dag, dag->tail[i]), 1));
    Profile profile = new_profile(dag->n);
    for (I v = 0; v < dag->n; v++) {
        I step = 0;
        for (I j = dag->up[v]; j < dag->up[v + 1]; j++) step = MAX(step, place[dag->parent[j]] + 1);
        profile.at[step]++;
    }
    for (I t = 1; t <= dag->n; t++) profile.at[t] += profile.at[t - 1];
    for (I t = 1; t <= dag->n; t++) profile.at[t] -= t;
    return profile;
}

static void find_blocks(Part *part) { /* roles that share an arc are one; blocks on a cycle of dependencies are one */
    I n = part->dag.n, k = part->k, *root = NEW(I, 2 * n), merged = 1;
    for (I v = 0; v < 2 * n; v++) root[v] = v;
    for (I i = 0; i < part->dag.m; i++) join(root, part->dag.tail[i], n + part->dag.child[i]);
    while (merged) { /* the strong components of the blocks, by repeated trimming of what is on no cycle, then one cycle */
        I *tails = NEW(I, k), *heads = NEW(I, k), m = 0, *ptr = NEW(I, 2 * n + 1), *rows = NEW(I, k), *seen = NEW(I, 2 * n);
        I *way = NEW(I, 2 * n), *next = NEW(I, 2 * n);
        merged = 0;
        for (I v = 0; v < k; v++)
            if (parents(&part->dag, v) && find(root, n + v) != find(root, v)) tails[m] = find(root, n + v), heads[m++] = find(root, v);
        fill_rows(2 * n, m, tails, heads, ptr, rows);
        for (I begin = 0; begin < 2 * n; begin++) { /* depth first; a back arc closes a cycle, whose blocks become one */
            if (seen[begin] || ptr[begin] == ptr[begin + 1]) continue;
            I depth = 0;
            way[0] = begin, seen[begin] = 1;
            while (depth >= 0) {
                I v = way[depth];
                if (next[v] == ptr[v + 1] - ptr[v]) { seen[v] = 2, depth--; continue; }
                I w = rows[ptr[v] + next[v]++];
                if (!seen[w]) { seen[w] = 1, way[++depth] = w; continue; }
                for (I d = depth; seen[w] == 1 && way[d] != w; d--) join(root, way[d], w), merged = 1;
            }
        }
        drop(tails), drop(heads), drop(ptr), drop(rows), drop(seen), drop(way), drop(next);
    }
    I *home = NEW(I, 2 * n);
    part->block = NEW(I, k), part->first = NEW(I, k), part->blocks = 0;
    for (I v = 0; v < k; v++) {
        I label = find(root, v);
        if (!home[label]) part->first[part->blocks] = v, home[label] = ++part->blocks;
        part->block[v] = home[label] - 1;
    }
    drop(root), drop(home);
}

static Part make_part(const Dag *dag, const I *nonsinks, I k) {
    Part part = {.k = k};
    I n = dag->n, size = k, *place = NEW(I, n), *id = NEW(I, n), m = 0;
    for (I v = 0; v < n; v++) place[v] = -1;
    for (I i = 0; i < k; i++) place[nonsinks[i]] = i, id[i] = dag->id[nonsinks[i]];
    char *outside = NEW(char, n);
    for (I i = 0; i < k; i++) {
        m += children(dag, nonsinks[i]);
        for (I j = dag->down[nonsinks[i]]; j < dag->down[nonsinks[i] + 1]; j++) outside[dag->child[j]] = place[dag->child[j]] < 0;
    }
    for (I v = 0; v < n; v++) if (outside[v]) id[size] = dag->id[v], place[v] = size++;
    I *tails = NEW(I, m), *heads = NEW(I, m), *steps = NEW(I, size);
    m = 0;
    for (I i = 0; i < k; i++)
        for (I j = dag->down[nonsinks[i]]; j < dag->down[nonsinks[i] + 1]; j++) tails[m] = i, heads[m++] = place[dag->child[j]];
    part.dag = make_dag(size, m, tails, heads, id);
    for (I v = 0; v < size; v++) steps[v] = v;
    Profile profile = eligible(&part.dag, steps);
    part.cumulative = new_profile(k);
    for (I t = 0; t <= k; t++) part.cumulative.at[t] = profile.at[t] - profile.at[0] + t;
    drop(place), drop(id), drop(outside), drop(tails), drop(heads), drop(steps), drop(profile.at);
    find_blocks(&part);
    return part;
}

static void drop_part(Part *part) { drop_dag(&part->dag), drop(part->block), drop(part->first), drop(part->cumulative.at); }

static Part part_of_span(const Dag *dag, I begin, I end) {
    I *tasks = NEW(I, end - begin);
    for (I i = begin; i < end; i++) tasks[i - begin] = i;
    Part part = make_part(dag, tasks, end - begin);
    drop(tasks);
    return part;
}

typedef struct { Dag dag; Profile maxima; U hash; } Shape;

static Profile *all_maxima(const Part *part) { /* of every block; equal blocks share one */
    static Shape *shapes;
    static I known, room;
    const Dag *dag = &part->dag;
    Profile *profiles = NEW(Profile, part->blocks);
    I *owner = NEW(I, dag->m), *from = NEW(I, dag->m), *ptr = NEW(I, part->blocks + 1), *rows = NEW(I, dag->m), *mark = NEW(I, dag->n);
    for (I i = 0; i < dag->m; i++) owner[i] = part->block[dag->tail[i]], from[i] = i;
    fill_rows(part->blocks, dag->m, owner, from, ptr, rows);
    for (I b = 0; b < part->blocks; b++) {
        I m = ptr[b + 1] - ptr[b], size = 0, *ends = NEW(I, 2 * m), *tails = NEW(I, m), *heads = NEW(I, m), *id = NEW(I, 2 * m);
        for (I i = 0; i < m; i++) ends[2 * i] = dag->tail[rows[ptr[b] + i]], ends[2 * i + 1] = dag->child[rows[ptr[b] + i]];
        qsort(ends, (size_t)(2 * m), sizeof(I), falling_order);
        for (I i = 2 * m - 1; i >= 0; i--)
            if (i == 2 * m - 1 || ends[i] != ends[i + 1]) id[size] = dag->id[ends[i]], mark[ends[i]] = size++;
        for (I i = 0; i < m; i++) tails[i] = mark[dag->tail[rows[ptr[b] + i]]], heads[i] = mark[dag->child[rows[ptr[b] + i]]];
        Shape shape = {.dag = make_dag(size, m, tails, heads, id), .hash = (U)(size * 31 + m)};
        for (I i = 0; i < m; i++) shape.hash = shape.hash * 1000003 + (U)shape.dag.child[i] * 7 + (U)shape.dag.tail[i];
        I i = 0;
        for (; i < known; i++)
            if (shapes[i].hash == shape.hash && shapes[i].dag.n == size && same_row(shapes[i].dag.child, shapes[i].dag.m, shape.dag.child, m)
                && !memcmp(shapes[i].dag.tail, shape.dag.tail, (size_t)m * sizeof(I))) break;
        if (i == known) {
            if (known == room) shapes = grow(shapes, room, 2 * room + 8, sizeof(Shape)), room = 2 * room + 8;
            shape.maxima = block_maxima(&shape.dag), shapes[known++] = shape;
        } else drop_dag(&shape.dag);
        profiles[b] = shapes[i].maxima;
        drop(ends), drop(tails), drop(heads), drop(id);
    }
    drop(owner), drop(from), drop(ptr), drop(rows), drop(mark);
    return profiles;
}

static void check_run(const Profile *profiles, I size, const I *gains, I steps, const char *joined) {
    I t = 0;
    for (I i = 0; i < size; i++)
        for (I s = 1; s <= profiles[i].steps; s++, t++)
            require(t < steps && gains[t] == profiles[i].at[s] - profiles[i].at[s - 1], "a block or unit is not run at its maxima");
    require(t == steps, "a block or unit is not run at its maxima");
    for (I i = 0; i + 1 < size; i++)
        require(!joined[i] || (i && joined[i - 1] && profiles[i - 1].at == profiles[i].at && profiles[i].at == profiles[i + 1].at)
            || precedes(profiles[i], profiles[i + 1]), "a block or unit does not have priority over the next");
}

static Certified certify(const Part *part, const Value *proof);

/* Rule chain */

static I *count_spans(const I *begin, const I *end, I size, I k) {
    I *changes = NEW(I, k + 2);
    for (I i = 0; i < size; i++) if (end[i] > begin[i]) changes[begin[i] + 1]++, changes[end[i] + 1]--;
    for (I t = 1; t <= k; t++) changes[t] += changes[t - 1];
    return changes;
}

static char *segment_ends(const Part *part) {
    const Dag *dag = &part->dag;
    I k = part->k, m = 0, *self = NEW(I, k), *soonest = NEW(I, k), *latest = NEW(I, k), *from = NEW(I, dag->m), *to = NEW(I, dag->m);
    for (I v = 0; v < k; v++) self[v] = v, soonest[v] = k, latest[v] = -1;
    for (I i = 0; i < dag->m; i++) {
        I u = dag->tail[i], v = dag->child[i];
        if (v < k) soonest[u] = MIN(soonest[u], v), latest[v] = MAX(latest[v], u);
    }
    for (I i = 0; i < dag->m; i++) if (dag->child[i] < k) from[m] = latest[dag->child[i]], to[m++] = soonest[dag->tail[i]];
    I *above = count_spans(self, soonest, k, k), *below = count_spans(latest, self, k, k), *meeting = count_spans(from, to, m, k);
    char *ends = NEW(char, k + 1);
    for (I t = 0; t <= k; t++) ends[t] = !t || t == k || above[t] * below[t] == meeting[t];
    I *gone[] = {self, soonest, latest, from, to, above, below, meeting};
    for (int i = 0; i < 8; i++) drop(gone[i]);
    return ends;
}

static Certified by_chain(const Part *part, const Value *proof) {
    I k = part->k, size = 0, steps = 0, *gains = NEW(I, k), *rest = NEW(I, k), *segment = NEW(I, k + 1);
    char *ends = segment_ends(part), *listed = NEW(char, k), *joined = NEW(char, part->blocks), *used = NEW(char, k + 1);
    Certified result = {new_profile(k), 0, 0};
    const Value *segments = get(proof, "segments");
    for (I t = 0; t < k; t++) gains[t] = part->cumulative.at[t + 1] - part->cumulative.at[t], segment[t + 1] = segment[t] + ends[t + 1];
    for (I i = 0; segments && i < segments->size; i++) {
        const Value *entry = segments->items + i;
        I first = whole(entry, "first"), last = whole(entry, "last"), good = first >= 0 && first < last && last <= k;
        good = good && ends[first] && ends[last] && segment[last] == segment[first] + 1 && !used[first];
        require(good && !rules(entry, "chain"), "(%lld, %lld) is not a segment that can be proved separately", first, last);
        used[first] = 1;
        Part inner = part_of_span(&part->dag, first, last);
        Certified proved = certify(&inner, entry);
        for (I t = first; t < last; t++) gains[t] = proved.bound.at[t - first + 1] - proved.bound.at[t - first], listed[t] = 1;
        result.slack += proved.slack, result.impossible |= proved.impossible;
        drop(proved.bound.at), drop_part(&inner);
    }
    Profile *maxima = all_maxima(part), *linear = NEW(Profile, part->blocks);
    for (I b = 0, before = -1; b < part->blocks; b++) {
        I first = part->first[b];
        if (listed[first]) continue;
        linear[size] = maxima[b];
        if (size) joined[size - 1] = segment[before] == segment[first];
        before = first, size++;
    }
    for (I t = 0; t < k; t++) if (!listed[t]) rest[steps++] = gains[t];
    check_run(linear, size, rest, steps, joined);
    for (I t = 0; t < k; t++) result.bound.at[t + 1] = result.bound.at[t] + gains[t];
    drop(gains), drop(rest), drop(segment), drop(ends), drop(listed), drop(joined), drop(used), drop(maxima), drop(linear);
    return result;
}

/* Rules units, exact and sum */

static Certified by_units(const Part *part, const Value *proof) {
    const Value *sizes = get(proof, "units");
    I k = part->k, total = 0, least = LLONG_MAX, *unit = NEW(I, k), *gains = NEW(I, k), t = 0;
    for (I u = 0; u < sizes->size; u++) {
        least = MIN(least, sizes->items[u].whole);
        total = least > 0 && sizes->items[u].whole <= k - total ? total + sizes->items[u].whole : k + 1;
    }
    require(sizes->size && least > 0 && total == k, "the units are not made of all tasks");
    for (I u = 0; u < sizes->size; u++) for (I i = 0; i < sizes->items[u].whole; i++) unit[t++] = u;
    for (I v = 0; v < k; v++) require(unit[v] == unit[part->first[part->block[v]]], "a block is divided between units");
    Profile *own = all_maxima(part), *maxima = NEW(Profile, sizes->size);
    char *joined = NEW(char, sizes->size);
    memset(joined, 1, (size_t)sizes->size);
    for (I u = 0; u < sizes->size; u++) maxima[u] = new_profile(0);
    for (I b = 0; b < part->blocks; b++) {
        Profile *at = maxima + unit[part->first[b]], next = convolve(*at, own[b]);
        drop(at->at), *at = next;
    }
    for (I i = 0; i < k; i++) gains[i] = part->cumulative.at[i + 1] - part->cumulative.at[i];
    check_run(maxima, sizes->size, gains, k, joined);
    Certified result = {new_profile(k), 0, 0};
    memcpy(result.bound.at, part->cumulative.at, (size_t)(k + 1) * sizeof(I));
    for (I u = 0; u < sizes->size; u++) drop(maxima[u].at);
    drop(unit), drop(gains), drop(own), drop(maxima), drop(joined);
    return result;
}

static Certified by_sets(const Part *part, const Value *proof) {
    Sets sets;
    require(make_sets(&part->dag, 0, 20, &sets), "too many tasks to enumerate all sets");
    Certified result = {set_maxima(&sets), 0, 0};
    const Value *conflict = get(proof, "conflict");
    I k = part->k, chosen = 0, most = 0;
    char *steps = NEW(char, k + 1);
    memset(steps, 1, (size_t)k + 1);
    I area = same(part->cumulative, result.bound) ? sum(result.bound) : largest_sum(&sets, steps);
    require(area == sum(part->cumulative), "the order does not have the largest area");
    memset(steps, 0, (size_t)k + 1);
    for (I i = 0; conflict && i < conflict->size; i++)
        if (conflict->items[i].whole >= 0 && conflict->items[i].whole <= k) steps[conflict->items[i].whole] = 1;
    for (I t = 0; t <= k; t++) if (steps[t]) chosen++, most += result.bound.at[t];
    require(!conflict || !conflict->size || (chosen == conflict->size && largest_sum(&sets, steps) < most),
        "one order is best after all the steps said to be in conflict");
    result.slack = sum(result.bound) - area, result.impossible = result.slack > 0;
    drop(steps), drop_sets(&sets);
    return result;
}

static I *listed_tasks(const Dag *dag, const Value *list) { /* -1 for unknown names */
    I *tasks = NEW(I, list->size);
    for (I i = 0; i < list->size; i++) tasks[i] = number(dag, list->items[i].text);
    return tasks;
}

static Certified by_modules(const Part *part, const Value *proof);

static Certified by_sum(const Part *part, const Value *proof) {
    const Dag *dag = &part->dag;
    const Value *parts = get(proof, "parts"), *modules = get(proof, "modules");
    I *root = NEW(I, dag->n), *open = NEW(I, dag->n), missing = 0, attained = 1;
    for (I v = 0; v < dag->n; v++) root[v] = v;
    for (I i = 0; i < dag->m; i++) join(root, dag->tail[i], dag->child[i]);
    for (I v = 0; v < part->k; v++) missing += !open[find(root, v)]++;
    Profile *bounds = NEW(Profile, parts->size + 1);
    Certified result = {.slack = 0};
    for (I i = 0; i < parts->size; i++) {
        const Value *order = get(parts->items + i, "order");
        I *tasks = listed_tasks(dag, order), good = order->size > 0 && order->size < part->k, home = -1;
        for (I j = 0; good && j < order->size; j++) {
            good = tasks[j] >= 0 && tasks[j] < part->k && (!j || find(root, tasks[j]) == home);
            if (good) home = find(root, tasks[j]);
        }
        I *sorted = grow(NULL, 0, order->size, sizeof(I));
        memcpy(sorted, tasks, (size_t)order->size * sizeof(I)), qsort(sorted, (size_t)order->size, sizeof(I), falling_order);
        for (I j = 1; good && j < order->size; j++) good = sorted[j] != sorted[j - 1];
        require(good && open[home] == order->size, "a part is not one of several connected ones");
        open[home] = 0, missing--;
        Part inner = make_part(dag, tasks, order->size);
        Certified proved = certify(&inner, parts->items + i);
        attained = attained && same(inner.cumulative, proved.bound);
        bounds[i] = proved.bound, result.impossible |= proved.impossible;
        drop(tasks), drop(sorted), drop_part(&inner);
    }
    require(!missing, "a connected part is missing");
    result.bound = bound_by_parts(bounds, parts->size);
    if (attained && !too_long(part->k) && parts->size) {
        Profile together = convolve_all(bounds, 1);
        for (I i = 1; i < parts->size && !result.impossible; i++) {
            result.impossible = !sweepable(together, bounds[i]);
            Profile next = convolve(together, bounds[i]);
            drop(together.at), together = next;
        }
        drop(together.at);
    }
    for (I i = 0; i < parts->size; i++) drop(bounds[i].at);
    drop(root), drop(open), drop(bounds);
    if (!modules) return result;
    expect(rules(modules, "modules"), "the modules of a sum are not given as modules");
    Certified other = by_modules(part, modules);
    I area = sum(other.bound) - other.slack;
    lower(result.bound, other.bound), drop(other.bound.at);
    result.slack = MAX(0, sum(result.bound) - area), result.impossible |= other.impossible;
    return result;
}

/* Shares */

static I *homes(const Dag *dag, const Value *modules, const char *key) {
    I *home = NEW(I, dag->n);
    for (I v = 0; v < dag->n; v++) home[v] = -1;
    for (I i = 0; i < modules->size; i++) {
        const Value *list = get(modules->items + i, key);
        for (I j = 0; j < list->size; j++) {
            I v = number(dag, list->items[j].text);
            require(v >= 0 && home[v] < 0, "the modules do not have every task once");
            home[v] = i;
        }
    }
    return home;
}

static Profile ceiling(const Value *module) {
    I size = get(module, "tasks")->size, p = whole(module, "p"), q = whole(module, "q"), renders = get(module, "renders")->size;
    require(q > 0 && (Wide)size * p < LARGEST, "a module's share is too large");
    Profile most = new_profile(size);
    for (I t = 0; t <= size; t++) most.at[t] = MIN(t * p / q, renders);
    return most;
}

static Profile shares_bound(const Dag *dag, const Value *shares) {
    const Value *modules = get(shares, "modules"), *flow = get(shares, "flow");
    I *executed = homes(dag, modules, "tasks"), *rendered = homes(dag, modules, "renders"), steps = 0;
    Wide *kept = NEW(Wide, dag->n), *handed = NEW(Wide, dag->n), total = 0, above[2] = {1, 0};
    for (I v = 0; v < dag->n; v++)
        require((executed[v] >= 0) == (children(dag, v) > 0) && (rendered[v] >= 0) == (parents(dag, v) > 0),
            "the modules do not have every task once");
    for (I i = 0; i < flow->size; i++) total += flow->items[i].items[2].whole;
    require(total < LARGEST, "more worth flows than there is");
    for (I i = 0; i < flow->size; i++) {
        const Value *row = flow->items[i].items;
        I child = number(dag, row[0].text), parent = number(dag, row[1].text), worth = row[2].whole;
        require(worth >= 0 && child >= 0 && parent >= 0 && executed[parent] == rendered[child] && has_arc(dag, parent, child),
            "each worth must be at least 0 and flow from a task to one of its parents in the same module, got %s from %s to %s",
            commas(worth), quoted(row[0].text, 0), quoted(row[1].text, 0));
        handed[child] += worth, kept[parent] += worth;
    }
    for (I v = 0; v < dag->n; v++) {
        I due = rendered[v] < 0 ? 0 : whole(modules->items + rendered[v], "q");
        Wide passed = handed[v] - due;
        require(!passed || (passed > 0 && executed[v] == rendered[v]), "task %s must hand on a worth of %s%s, got %s",
            quoted(name_of(dag, v), 0), executed[v] == rendered[v] ? "at least " : "", commas(due), commas((I)handed[v]));
        kept[v] -= passed;
    }
    for (I i = 0; i < modules->size; i++) steps += get(modules->items + i, "tasks")->size;
    Profile bound = new_profile(steps);
    for (I i = 0, done = 0; i < modules->size; i++) {
        const Value *module = modules->items + i, *tasks = get(module, "tasks");
        I size = tasks->size, renders = get(module, "renders")->size, p = whole(module, "p"), q = whole(module, "q");
        require(size > 0, "a module has no tasks");
        int full = q > 0 && (i == modules->size - 1 || (Wide)size * p == (Wide)renders * q);
        require(full && p * above[1] <= above[0] * q, "the shares do not fall from full module to full module");
        Wide least = LLONG_MAX, most = 0;
        for (I j = 0; j < size; j++) {
            Wide own = kept[number(dag, tasks->items[j].text)];
            least = MIN(least, own), most = MAX(most, own);
        }
        require(least >= 0 && most == p, "a module's share is not the most that one of its tasks keeps");
        Profile own = ceiling(module);
        for (I t = 1; t <= size; t++) bound.at[done + t] = bound.at[done] + own.at[t];
        drop(own.at);
        done += size, above[0] = p, above[1] = q;
    }
    drop(executed), drop(rendered), drop(kept), drop(handed);
    return bound;
}

static Profile shares_of_rest(const Dag *dag, const char *removed, const Value *shares) {
    I size = 0, m = 0, *place = NEW(I, dag->n), *id = NEW(I, dag->n), *tails = NEW(I, dag->m), *heads = NEW(I, dag->m);
    for (I v = 0; v < dag->n; v++) if (!removed[v]) id[size] = dag->id[v], place[v] = size++;
    for (I i = 0; i < dag->m; i++)
        if (!removed[dag->tail[i]] && !removed[dag->child[i]]) tails[m] = place[dag->tail[i]], heads[m++] = place[dag->child[i]];
    Dag rest = make_dag(size, m, tails, heads, id);
    Profile bound = shares_bound(&rest, shares);
    drop(place), drop(id), drop(tails), drop(heads), drop_dag(&rest);
    return bound;
}

static Profile probed(const Dag *dag, Profile bound, const Value *probes) { /* with the task, or without it */
    for (I i = 0; probes && i < probes->size; i++) {
        const char *name = get(probes->items + i, "task")->text;
        I v = number(dag, name), needed = 0, working = 0, at_once = 0;
        require(v >= 0, "unknown task %s in a probe", quoted(name, 0));
        char *above = reached(dag, &v, 1, 0), *below = reached(dag, &v, 1, 1);
        for (I u = 0; u < dag->n; u++) {
            needed += above[u], working += below[u] && children(dag, u);
            int all = parents(dag, u) > 0;
            for (I j = dag->up[u]; j < dag->up[u + 1]; j++) all = all && above[dag->parent[j]];
            at_once += all;
        }
        below[v] = 0;
        Profile rest = shares_of_rest(dag, above, get(probes->items + i, "executed"));
        require(rest.steps + needed == bound.steps, "the probe of %s is not of all the other tasks", quoted(name, 0));
        Profile least = shares_of_rest(dag, below, get(probes->items + i, "waiting"));
        for (I t = 0; t <= bound.steps; t++) {
            I with = t < needed ? NEVER : at_once + rest.at[t - needed];
            I without = t < bound.steps + 1 - working ? least.at[MIN(t, least.steps)] : NEVER;
            bound.at[t] = MIN(bound.at[t], MAX(with, without));
        }
        drop(above), drop(below), drop(rest.at), drop(least.at);
    }
    return bound;
}

/* Elimination: tables of the best values by the states of some roles. Role 2v is v rendered, 2v + 1 is v executed. */

#define WIDEST 62
#define MOST_CELLS 400000000LL

typedef struct { I width, rows, cells, room, *role; U *code; I *first, *ptr; int *value; } Table; /* roles by place in the order */
typedef struct { const Dag *dag; I *role, size, *place, *group, *rank; } Elimination;
typedef struct {
    const Elimination *how;
    Table out, *one, *two;
    I in_one[WIDEST], in_two[WIDEST], low, high, most, dropped;
    U if_played[WIDEST], if_not[WIDEST], last; /* roles that must be played, and that must not be */
    int *sums, open;
} Join;

static void end_row(Join *join) {
    Table *out = &join->out;
    if (!join->open) return;
    if (out->rows + 2 > out->room) {
        I room = 2 * out->rows + 16;
        out->code = grow(out->code, out->rows, room, sizeof(U)), out->first = grow(out->first, out->rows, room, sizeof(I));
        out->ptr = grow(out->ptr, out->rows ? out->rows + 1 : 0, room + 1, sizeof(I)), out->room = room;
    }
    I length = join->high - join->low + 1;
    expect(out->cells + length < MOST_CELLS, "the tables of the proof are too large");
    if (out->cells + length > join->most) out->value = grow(out->value, out->cells, join->most = 2 * (out->cells + length), sizeof(int));
    memcpy(out->value + out->cells, join->sums + join->low, (size_t)length * sizeof(int));
    out->code[out->rows] = join->last, out->first[out->rows] = join->low, out->cells += length, out->ptr[++out->rows] = out->cells;
    for (I t = join->low; t <= join->high; t++) join->sums[t] = INT_MIN / 4;
    join->open = 0, join->low = LLONG_MAX, join->high = -1;
}

static void add_rows(Join *join, I a, I b, U code) {
    U row = join->dropped < 0 ? code : code >> 1;
    if (join->open && row != join->last) end_row(join);
    join->open = 1, join->last = row;
    const Table *one = join->one, *two = join->two;
    I played = join->dropped >= 0 && (code & 1), steps = played && join->dropped % 2, gain = played && join->dropped % 2 == 0;
    I at = one->first[a] + two->first[b] + steps, length = one->ptr[a + 1] - one->ptr[a], other = two->ptr[b + 1] - two->ptr[b];
    join->low = MIN(join->low, at), join->high = MAX(join->high, at + length + other - 2);
    for (I i = 0; i < length; i++) {
        const int x = one->value[one->ptr[a] + i] + (int)gain, *y = two->value + two->ptr[b];
        int *z = join->sums + at + i;
        if (x >= 0) for (I j = 0; j < other; j++) z[j] = MAX(z[j], x + y[j]);
    }
}

static I first_played(const Table *table, I begin, I end, I bit) { /* rows that agree in all higher bits */
    for (I high = end; bit >= 0 && begin < high;) {
        I middle = (begin + high) / 2;
        if (table->code[middle] >> bit & 1) high = middle, end = middle; else begin = middle + 1;
    }
    return end;
}

static void match(Join *join, I level, I a, I a_end, I b, I b_end, U code) {
    if (level < 0) { add_rows(join, a, b, code); return; }
    I bit = join->in_one[level], other = join->in_two[level], cut = first_played(join->one, a, a_end, bit), split = first_played(join->two, b, b_end, other);
    for (int played = 0; played < 2; played++) {
        if (played ? (code & join->if_played[level]) != join->if_played[level] : (code & join->if_not[level]) != 0) continue;
        I x = played && bit >= 0 ? cut : a, x_end = !played && bit >= 0 ? cut : a_end;
        I y = played && other >= 0 ? split : b, y_end = !played && other >= 0 ? split : b_end;
        if (x < x_end && y < y_end) match(join, level - 1, x, x_end, y, y_end, code | (U)played << level);
    }
}

static int implies(const Elimination *how, I low, I high) { /* executed after being rendered, rendered after its parents' executions */
    return low % 2 ? high == low - 1 : high % 2 && has_arc(how->dag, high / 2, low / 2);
}

static void add_role(Table *table, I place) { /* unless it is there */
    I i = table->width;
    for (; i > 0 && table->role[i - 1] > place; i--) {}
    if (i > 0 && table->role[i - 1] == place) return;
    expect(table->width < WIDEST, "the tables of the proof are too wide");
    memmove(table->role + i + 1, table->role + i, (size_t)(table->width++ - i) * sizeof(I));
    table->role[i] = place;
}

static Table times(const Elimination *how, Table *one, Table *two, const I *more, I size, I dropped) { /* drops both */
    Join join = {.how = how, .out = {.role = NEW(I, WIDEST + 1), .ptr = NEW(I, 1)}, .one = one, .two = two, .low = LLONG_MAX, .high = -1, .dropped = dropped};
    for (I i = 0; i < one->width; i++) add_role(&join.out, one->role[i]);
    for (I i = 0; i < two->width; i++) add_role(&join.out, two->role[i]);
    for (I i = 0; i < size; i++) add_role(&join.out, more[i]);
    for (I i = 0; i < join.out.width; i++) {
        I v = how->role[join.out.role[i]];
        join.in_one[i] = join.in_two[i] = -1;
        for (I j = 0; j < one->width; j++) if (one->role[j] == join.out.role[i]) join.in_one[i] = j;
        for (I j = 0; j < two->width; j++) if (two->role[j] == join.out.role[i]) join.in_two[i] = j;
        for (I j = i + 1; j < join.out.width; j++) {
            I u = how->role[join.out.role[j]];
            int alike = how->group[v / 2] >= 0 && how->group[v / 2] == how->group[u / 2] && v % 2 == u % 2;
            int later = how->rank[v / 2] > how->rank[u / 2]; /* of tasks that are alike, the earlier one is played first */
            if (implies(how, v, u) || (alike && later)) join.if_played[i] |= 1ULL << j;
            if (implies(how, u, v) || (alike && !later)) join.if_not[i] |= 1ULL << j;
        }
    }
    join.sums = NEW(int, how->dag->n + 2);
    for (I t = 0; t < how->dag->n + 2; t++) join.sums[t] = INT_MIN / 4;
    if (one->rows && two->rows) match(&join, join.out.width - 1, 0, one->rows, 0, two->rows, 0);
    end_row(&join);
    Table *gone[] = {one, two};
    for (int i = 0; i < 2; i++) drop(gone[i]->role), drop(gone[i]->code), drop(gone[i]->first), drop(gone[i]->ptr), drop(gone[i]->value);
    if (dropped >= 0) memmove(join.out.role, join.out.role + 1, (size_t)--join.out.width * sizeof(I));
    drop(join.sums);
    return join.out;
}

static Table unit_table(void) {
    Table table = {0, 1, 1, 1, NEW(I, 1), NEW(U, 1), NEW(I, 1), NEW(I, 2), NEW(int, 1)};
    return table.ptr[1] = 1, table;
}

static Table eliminate(const Elimination *how, I kept) { /* all roles but the last ones; tables wait at their first role */
    Table *waiting = NEW(Table, 4 * how->size + 4);
    I end = 0, *more = NEW(I, how->dag->n);
    for (I i = 0; i <= how->size - kept; i++) {
        int last = i == how->size - kept;
        for (;;) {
            I least = -1, second = -1;
            for (I j = 0; j < end; j++) {
                if (!last && (!waiting[j].width || waiting[j].role[0] != i)) continue;
                if (least < 0 || waiting[j].cells < waiting[least].cells) second = least, least = j;
                else if (second < 0 || waiting[j].cells < waiting[second].cells) second = j;
            }
            I size = 0, left = 0;
            for (I j = 0; j < end; j++) left += last || (waiting[j].width && waiting[j].role[0] == i);
            Table one = least < 0 ? unit_table() : waiting[least], two = second < 0 ? unit_table() : waiting[second], made;
            if (left <= 2 && !last) {
                I r = how->role[i], v = r / 2;
                if (how->place[r ^ 1] > i) more[size++] = how->place[r ^ 1];
                for (I j = r % 2 ? how->dag->down[v] : how->dag->up[v]; j < (r % 2 ? how->dag->down[v + 1] : how->dag->up[v + 1]); j++) {
                    I u = r % 2 ? 2 * how->dag->child[j] : 2 * how->dag->parent[j] + 1;
                    if (how->place[u] > i) more[size++] = how->place[u];
                }
                more[size++] = i;
                made = times(how, &one, &two, more, size, r);
            } else made = times(how, &one, &two, more, 0, -1);
            I kept_tables = 0;
            for (I j = 0; j < end; j++) if (j != least && j != second) waiting[kept_tables++] = waiting[j];
            waiting[end = kept_tables] = made, end++;
            if (left <= 2) break;
        }
    }
    Table result = waiting[end - 1];
    drop(waiting), drop(more);
    return result;
}

/* The roles that a list of names stands for. With no list of tasks to execute first, a name stands for all its roles. */
static Elimination read_roles(const Dag *dag, const Value *order, const Value *early, const I *kept, I kept_size, const char *complaint) {
    Elimination how = {dag, NEW(I, 2 * order->size + kept_size + 1), 0, NEW(I, 2 * dag->n), NEW(I, dag->n), NEW(I, dag->n)};
    char *turned = NEW(char, dag->n), *used = NEW(char, 2 * dag->n);
    I all = 0, distinct = 0;
    for (I v = 0; v < dag->n; v++) all += (children(dag, v) > 0) + (parents(dag, v) > 0), how.group[v] = -1, how.place[2 * v] = how.place[2 * v + 1] = -1;
    for (I i = 0; early && i < early->size; i++) {
        I v = number(dag, early->items[i].text);
        if (v >= 0 && children(dag, v) && parents(dag, v) && !turned[v]) turned[v] = 1, distinct++;
    }
    int fits = !early || distinct == early->size;
    for (I i = 0; fits && i < order->size + kept_size; i++) {
        I v = i < order->size ? number(dag, order->items[i].text) : kept[i - order->size];
        I roles[2], size = 0;
        if (v >= 0 && parents(dag, v) && i < order->size) roles[size++] = 2 * v;
        if (v >= 0 && children(dag, v)) roles[size++] = 2 * v + 1;
        if (size == 2 && turned[v]) roles[0] = 2 * v + 1, roles[1] = 2 * v;
        if (early && i < order->size) { /* each mention stands for the next role */
            I next = size && used[roles[0]] ? 1 : 0;
            if (next >= size) continue;
            roles[0] = roles[next], size = 1;
            if (used[roles[0]]) continue;
        }
        for (I j = 0; j < size; j++) fits = fits && !used[roles[j]], used[roles[j]] = 1, how.place[roles[j]] = how.size, how.role[how.size++] = roles[j];
    }
    require(fits && how.size == all, "%s", complaint);
    drop(turned), drop(used);
    return how;
}

static int swaps_hold(const Dag *dag, const Value *alike) {
    char *fixed = NEW(char, dag->n);
    I *image = NEW(I, dag->n), *back = NEW(I, dag->n);
    for (I e = 0; e < alike->size; e++) {
        const Value *tasks = get(alike->items + e, "tasks"), *swaps = get(alike->items + e, "swaps");
        I *members = listed_tasks(dag, tasks);
        char *own = NEW(char, dag->n);
        if (swaps->size != tasks->size - 1) return 0;
        for (I i = 0; i < tasks->size; i++) {
            if (members[i] < 0 || own[members[i]]) return 0;
            own[members[i]] = 1;
        }
        for (I i = 0; i < swaps->size; i++) {
            const Value *pairs = swaps->items + i;
            I a = members[i], b = members[i + 1];
            for (I v = 0; v < dag->n; v++) image[v] = back[v] = -1;
            for (I j = 0; j < pairs->size; j++) {
                I u = number(dag, pairs->items[j].items[0].text), v = number(dag, pairs->items[j].items[1].text);
                if (u < 0 || v < 0 || image[u] >= 0 || back[v] >= 0) return 0;
                if (u != a && u != b && (fixed[u] || own[u])) return 0;
                image[u] = v, back[v] = u;
            }
            for (I v = 0; v < dag->n; v++) if ((image[v] < 0) != (back[v] < 0)) return 0;
            if (image[a] != b || image[b] != a || fixed[a] || fixed[b]) return 0;
            for (I j = 0; j < dag->m; j++) {
                I u = dag->tail[j], v = dag->child[j];
                if (!has_arc(dag, image[u] < 0 ? u : image[u], image[v] < 0 ? v : image[v])) return 0;
            }
        }
        for (I i = 0; i < tasks->size; i++) fixed[members[i]] = 1;
        drop(members), drop(own);
    }
    drop(fixed), drop(image), drop(back);
    return 1;
}

static Profile by_elimination(const Part *part, const Value *proof) {
    const Value *alike = get(proof, "alike");
    Elimination how = read_roles(&part->dag, get(proof, "order"), get(proof, "executed_first"), NULL, 0, "not every task is eliminated once");
    require(swaps_hold(&part->dag, alike), "tasks said to be alike cannot be swapped");
    for (I e = 0; e < alike->size; e++)
        for (I i = 0; i < get(alike->items + e, "tasks")->size; i++) {
            I v = number(&part->dag, get(alike->items + e, "tasks")->items[i].text);
            how.group[v] = e, how.rank[v] = i;
        }
    Table last = eliminate(&how, 0);
    Profile bound = new_profile(part->k);
    for (I t = 0; t <= part->k; t++) bound.at[t] = last.value[t];
    return bound;
}

/* Marked tasks: for each set of them and step, the largest sum that can follow */

typedef struct { I *task, size, *to_come, steps; } Marks;

static Marks read_marks(const Part *part, const Value *marked) {
    Marks marks = {NULL, 0, NULL, part->k};
    if (!marked) return marks;
    const Value *tasks = get(marked, "tasks");
    marks.task = listed_tasks(&part->dag, tasks), marks.size = tasks->size;
    qsort(marks.task, (size_t)marks.size, sizeof(I), falling_order);
    for (I i = 0; i < marks.size / 2; i++) {
        I other = marks.task[i];
        marks.task[i] = marks.task[marks.size - 1 - i], marks.task[marks.size - 1 - i] = other;
    }
    for (I i = 0; i < marks.size; i++)
        require(marks.task[i] >= 0 && marks.task[i] < part->k && (!i || marks.task[i] != marks.task[i - 1]), "no tasks to mark");
    require(marks.size, "no tasks to mark");
    expect(marks.size < 27 && (part->k + 1) << marks.size <= 100000000, "too many sets of marked tasks");
    Elimination how = read_roles(&part->dag, get(marked, "order"), get(marked, "executed_first"), marks.task, marks.size, "not every unmarked task is eliminated once");
    Table last = eliminate(&how, marks.size);
    I sets = 1LL << marks.size, width = part->k + 1, *most = NEW(I, sets * width);
    for (I i = 0; i < sets * width; i++) most[i] = NEVER;
    for (I row = 0; row < last.rows; row++)
        for (I j = last.ptr[row]; j < last.ptr[row + 1]; j++) {
            I step = last.first[row] + __builtin_popcountll(last.code[row]) + j - last.ptr[row];
            if (last.value[j] >= 0) most[(I)last.code[row] * width + step] = last.value[j];
        }
    marks.to_come = NEW(I, sets * width);
    for (I t = part->k; t > 0; t--)
        for (I s = 0; s < sets; s++) {
            I best = most[s * width + t] + marks.to_come[s * width + t];
            for (I i = 0; i < marks.size; i++) {
                I grown = (s | 1LL << i) * width + t;
                best = MAX(best, most[grown] + marks.to_come[grown]);
            }
            marks.to_come[s * width + t - 1] = MAX(best, NEVER);
        }
    drop(most);
    return marks;
}

/* Positions: sets of executed units, by moves that each execute exactly the missing parents of some tasks */

typedef struct { I size, room, slots, *slot, *area; U *bits; } Layer;
typedef struct {
    I units, words, groups, *unit, *weight, *ptr, *need, *user_ptr, *user, *count, *size, *home, swaps, **one, **other, *pairs;
    char *opens;
    U *random;
} Game;
typedef struct { I group, size, gain, groups; U key; int opening; } Move;

static I positions_made;

static U scramble(U x) {
    x += 0x9e3779b97f4a7c15ULL, x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL, x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static void insert(Layer *layer, I words, const U *bits, I area) { /* each position once, with its largest area */
    if (2 * layer->size + 2 > layer->slots) {
        layer->slots = 4 * layer->size + 16;
        while (layer->slots & (layer->slots - 1)) layer->slots &= layer->slots - 1;
        layer->slots *= 2;
        drop(layer->slot), layer->slot = NEW(I, layer->slots);
        for (I i = 0; i < layer->size; i++) {
            U hash = 0;
            for (I w = 0; w < words; w++) hash = scramble(hash ^ layer->bits[i * words + w]);
            I s = (I)(hash & (U)(layer->slots - 1));
            while (layer->slot[s]) s = (s + 1) & (layer->slots - 1);
            layer->slot[s] = i + 1;
        }
    }
    U hash = 0;
    for (I w = 0; w < words; w++) hash = scramble(hash ^ bits[w]);
    I s = (I)(hash & (U)(layer->slots - 1));
    for (; layer->slot[s]; s = (s + 1) & (layer->slots - 1)) {
        I i = layer->slot[s] - 1;
        if (memcmp(layer->bits + i * words, bits, (size_t)words * sizeof(U))) continue;
        layer->area[i] = MAX(layer->area[i], area);
        return;
    }
    if (layer->size == layer->room) {
        I room = 2 * layer->room + 16;
        layer->bits = grow(layer->bits, layer->size * words, room * words, sizeof(U));
        layer->area = grow(layer->area, layer->size, room, sizeof(I)), layer->room = room;
    }
    expect(++positions_made * words < 100000000, "too many positions to try");
    memcpy(layer->bits + layer->size * words, bits, (size_t)words * sizeof(U));
    layer->area[layer->size++] = area, layer->slot[s] = layer->size;
}

static void drop_layer(Layer *layer) { drop(layer->slot), drop(layer->area), drop(layer->bits), *layer = (Layer){0}; }

static U row_hash(const I *row, I size, const I *unit) {
    U hash = (U)size;
    for (I i = 0; i < size; i++) hash = scramble(hash ^ (U)(unit ? unit[row[i]] : row[i]));
    return hash;
}

static Game make_game(const Dag *dag, const Value *swaps) {
    I n = dag->n, *first = NEW(I, n), *group = NEW(I, n), *example = NEW(I, n), slots = 16, needs = 0;
    Game game = {.unit = NEW(I, n), .weight = NEW(I, n), .count = NEW(I, n), .size = NEW(I, n), .ptr = NEW(I, n + 1), .home = NEW(I, n), .opens = NEW(char, n)};
    while (slots < 2 * n) slots *= 2;
    I *slot = NEW(I, slots);
    for (I v = 0; v < n; v++) { /* units: nonsinks with equal parents and equal children */
        game.unit[v] = -1;
        if (!children(dag, v)) continue;
        const I *down = dag->child + dag->down[v], *up = dag->parent + dag->up[v];
        I s = (I)((row_hash(down, children(dag, v), NULL) ^ 3 * row_hash(up, parents(dag, v), NULL)) & (U)(slots - 1)), u = -1;
        for (; slot[s]; s = (s + 1) & (slots - 1), u = -1) {
            u = first[slot[s] - 1];
            if (same_row(down, children(dag, v), dag->child + dag->down[u], children(dag, u)) && same_row(up, parents(dag, v), dag->parent + dag->up[u], parents(dag, u))) break;
        }
        if (u < 0) first[game.units] = v, slot[s] = ++game.units;
        game.weight[game.unit[v] = slot[s] - 1]++;
    }
    memset(slot, 0, (size_t)slots * sizeof(I));
    game.need = NEW(I, dag->m);
    for (I v = 0; v < n; v++) { /* groups: nonsources with equal parents */
        group[v] = -1;
        if (!parents(dag, v)) continue;
        const I *up = dag->parent + dag->up[v];
        I s = (I)(row_hash(up, parents(dag, v), NULL) & (U)(slots - 1)), u = -1;
        for (; slot[s]; s = (s + 1) & (slots - 1), u = -1) {
            u = example[slot[s] - 1];
            if (same_row(up, parents(dag, v), dag->parent + dag->up[u], parents(dag, u))) break;
        }
        if (u < 0) {
            example[game.groups] = v, slot[s] = ++game.groups;
            game.size[game.groups - 1] = parents(dag, v);
            for (I j = 0; j < parents(dag, v); j++) {
                I unit = game.unit[up[j]], there = 0;
                for (I i = game.ptr[game.groups - 1]; i < needs; i++) there |= game.need[i] == unit;
                if (!there) game.need[needs++] = unit;
            }
            game.ptr[game.groups] = needs;
        }
        game.count[group[v] = slot[s] - 1]++;
    }
    for (I u = 0; u < game.units; u++) game.home[u] = -1;
    for (I v = 0; v < n; v++) if (game.unit[v] >= 0 && group[v] >= 0) game.home[game.unit[v]] = group[v], game.opens[group[v]] = 1;
    I *from = NEW(I, needs);
    for (I g = 0; g < game.groups; g++) for (I i = game.ptr[g]; i < game.ptr[g + 1]; i++) from[i] = g;
    game.user_ptr = NEW(I, game.units + 1), game.user = NEW(I, needs), game.words = (game.units + 63) / 64, game.random = NEW(U, game.units);
    fill_rows(game.units, needs, game.need, from, game.user_ptr, game.user);
    for (I u = 0; u < game.units; u++) game.random[u] = scramble((U)u + 1);
    game.swaps = swaps ? swaps->size : 0, game.one = NEW(I *, game.swaps), game.other = NEW(I *, game.swaps), game.pairs = NEW(I, game.swaps);
    for (I s = 0; s < game.swaps; s++) {
        const Value *pairs = swaps->items + s;
        game.one[s] = NEW(I, pairs->size), game.other[s] = NEW(I, pairs->size);
        for (I j = 0; j < pairs->size; j++) {
            I a = game.unit[number(dag, pairs->items[j].items[0].text)], b = game.unit[number(dag, pairs->items[j].items[1].text)], there = a == b;
            for (I i = 0; i < game.pairs[s]; i++) there |= game.one[s][i] == a || game.other[s][i] == a;
            if (a >= 0 && b >= 0 && !there) game.one[s][game.pairs[s]] = a, game.other[s][game.pairs[s]++] = b;
        }
    }
    drop(first), drop(group), drop(example), drop(slot), drop(from);
    return game;
}

static int on(const U *bits, I u) { return (int)(bits[u / 64] >> (u % 64) & 1); }

static void sort_position(const Game *game, U *bits) { /* to an image by swaps; of two units that differ first, the first is executed */
    for (I pass = 0, changed = 1; changed && pass <= game->swaps; pass++) {
        changed = 0;
        for (I s = 0; s < game->swaps; s++) {
            I i = 0;
            while (i < game->pairs[s] && on(bits, game->one[s][i]) == on(bits, game->other[s][i])) i++;
            if (i == game->pairs[s] || on(bits, game->one[s][i])) continue;
            for (changed = 1; i < game->pairs[s]; i++) {
                I a = game->one[s][i], b = game->other[s][i];
                if (on(bits, a) != on(bits, b)) bits[a / 64] ^= 1ULL << a % 64, bits[b / 64] ^= 1ULL << b % 64;
            }
        }
    }
}

static int by_key(const void *a, const void *b) {
    const Move *x = a, *y = b;
    return x->key != y->key ? x->key < y->key ? -1 : 1 : (x->group > y->group) - (x->group < y->group);
}

static I see(const Game *game, const U *bits, I *missing, I *rendered, Move *moves) { /* the playable moves; equal ones are one */
    I size = 0, kept = 0;
    *rendered = 0;
    for (I g = 0; g < game->groups; g++) {
        missing[g] = game->size[g];
        for (I i = game->ptr[g]; i < game->ptr[g + 1]; i++) if (on(bits, game->need[i])) missing[g] -= game->weight[game->need[i]];
        if (!missing[g]) *rendered += game->count[g];
    }
    for (I g = 0; g < game->groups; g++) {
        Move move = {g, missing[g], game->count[g], 1, 0, game->opens[g]};
        int playable = missing[g] > 0;
        for (I i = game->ptr[g]; playable && i < game->ptr[g + 1]; i++) {
            I u = game->need[i];
            if (!on(bits, u)) move.key += game->random[u];
            playable = game->home[u] < 0 || !missing[game->home[u]];
        }
        if (playable) moves[size++] = move;
    }
    qsort(moves, (size_t)size, sizeof(Move), by_key);
    for (I i = 0; i < size; i++) {
        int equal = kept && moves[kept - 1].key == moves[i].key && moves[kept - 1].size == moves[i].size;
        for (I j = game->ptr[moves[i].group]; equal && j < game->ptr[moves[i].group + 1]; j++) { /* each unit missed here is missed there */
            int there = on(bits, game->need[j]);
            for (I o = game->ptr[moves[kept - 1].group]; !there && o < game->ptr[moves[kept - 1].group + 1]; o++) there = game->need[o] == game->need[j];
            equal = there;
        }
        if (equal) moves[kept - 1].gain += moves[i].gain, moves[kept - 1].groups++, moves[kept - 1].opening |= moves[i].opening;
        else moves[kept++] = moves[i];
    }
    return kept;
}

static int alone(const Game *game, const U *bits, const I *missing, const Move *move) { /* opens nothing, and no other group misses its tasks */
    I touches = 0;
    for (I i = game->ptr[move->group]; !move->opening && i < game->ptr[move->group + 1]; i++) {
        I u = game->need[i];
        for (I j = game->user_ptr[u]; !on(bits, u) && j < game->user_ptr[u + 1]; j++) touches += missing[game->user[j]] > 0 ? game->weight[u] : 0;
    }
    return !move->opening && touches == move->groups * move->size;
}

static void play(const Game *game, const U *bits, const Move *move, U *after) {
    memcpy(after, bits, (size_t)game->words * sizeof(U));
    for (I i = game->ptr[move->group]; i < game->ptr[move->group + 1]; i++) after[game->need[i] / 64] |= 1ULL << game->need[i] % 64;
    sort_position(game, after);
}

/* The largest sum above `incumbent`, else that; or, if `exactly`, whether an order attains the maxima (1) or none does (0). */
static I search(const Dag *dag, Profile maxima, I incumbent, const Value *swaps, const Marks *marks, int exactly) {
    Game game = make_game(dag, swaps);
    I k = maxima.steps, *missing = NEW(I, game.groups), rendered, *most = NEW(I, k + 1), *seen = NEW(I, 2 * game.groups), best = incumbent;
    Layer *layers = NEW(Layer, k + 1);
    U *after = NEW(U, game.words);
    Move *moves = NEW(Move, game.groups);
    for (I t = k; t > 0; t--) most[t - 1] = most[t] + maxima.at[t];
    insert(layers, game.words, after, 0);
    for (I t = 0; t < k; drop_layer(layers + t++)) {
        I rise = t + 1;
        while (rise < k && maxima.at[rise] == maxima.at[t]) rise++;
        for (I p = 0; p < layers[t].size; p++) {
            U *bits = layers[t].bits + p * game.words;
            I area = layers[t].area[p], size = see(&game, bits, missing, &rendered, moves), met = 0;
            for (I i = 0; i < size; i++) {
                const Move *move = moves + i;
                I end = t + move->size, sum = area + rendered * move->size + move->gain, bound = most[MIN(end, k)];
                if (exactly ? end != rise || rendered + move->gain != maxima.at[rise]
                            : area + rendered * (move->size - 1) + maxima.at[MIN(end, k)] + bound <= incumbent) continue;
                if (alone(&game, bits, missing, move)) { /* others of the same size and gain lead to the same */
                    I j = 0;
                    while (j < met && (seen[2 * j] != move->size || seen[2 * j + 1] != move->gain)) j++;
                    if (j < met) continue;
                    seen[2 * met] = move->size, seen[2 * met++ + 1] = move->gain;
                }
                play(&game, bits, move, after);
                I set = 0;
                for (I j = 0; marks && j < marks->size; j++) set |= (I)on(after, game.unit[marks->task[j]]) << j;
                if (marks && marks->size) bound = marks->to_come[set * (k + 1) + end];
                if (exactly || sum + bound > incumbent) insert(layers + end, game.words, after, sum);
            }
        }
    }
    for (I p = 0; p < layers[k].size; p++) best = exactly ? 1 : MAX(best, layers[k].area[p]);
    return best;
}

/* Series-parallel dags: a task leads from the node of its parents to the node of its children; nodes with one way in and one
   way out go, and ways beside each other become one. A string: tasks rendered, executed, and the sum of the profile meanwhile. */

typedef struct { I rendered, executed, sum; } String;
typedef struct { I tail, head, size; String *strings; } Way;

static String link(String a, String b) {
    return (String){a.rendered + b.rendered, a.executed + b.executed, a.sum + b.sum + a.rendered * b.executed};
}

static int denser(String a, String b) { return (Wide)a.rendered * b.executed > (Wide)b.rendered * a.executed; }

static I way_between(const Way *ways, const I *slot, I slots, I tail, I head, I *place) { /* -1 if there is none; place for one */
    *place = -1;
    for (I s = (I)(scramble((U)(tail * 1000003 + head)) & (U)(slots - 1));; s = (s + 1) & (slots - 1)) {
        if (!slot[s]) { *place = *place < 0 ? s : *place; return -1; }
        if (slot[s] > 0 && ways[slot[s] - 1].tail == tail && ways[slot[s] - 1].head == head) { *place = s; return slot[s] - 1; }
    }
}

static I series_parallel_area(const Dag *dag) { /* -1 if the dag is not series-parallel */
    I n = dag->n, *node = NEW(I, n), nodes = 0, size = 0, slots = 16, place;
    String *block = NEW(String, n + 1);
    for (I c = 0; c < n; c++) node[c] = -1;
    for (I v = 0; v < n; v++) { /* tasks whose first child is the same must have equal children, and these equal parents */
        if (!children(dag, v)) continue;
        const I *down = dag->child + dag->down[v];
        I u = dag->parent[dag->up[*down]];
        if (!same_row(down, children(dag, v), dag->child + dag->down[u], children(dag, u))) return -1;
        for (I j = 1; j < children(dag, v); j++)
            if (!same_row(dag->parent + dag->up[*down], parents(dag, *down), dag->parent + dag->up[down[j]], parents(dag, down[j]))) return -1;
        if (node[*down] < 0) block[nodes] = (String){children(dag, v), parents(dag, *down), children(dag, v)}, node[*down] = nodes++;
    }
    while (slots < 4 * n + 16) slots *= 2;
    I *slot = NEW(I, slots), *in = NEW(I, nodes + 2), *out = NEW(I, nodes + 2), *in_sum = NEW(I, nodes + 2), *out_sum = NEW(I, nodes + 2);
    Way *ways = NEW(Way, n + 1);
    for (I v = 0; v < n; v++) {
        I tail = parents(dag, v) ? node[dag->child[dag->down[dag->parent[dag->up[v]]]]] : nodes;
        I head = children(dag, v) ? node[dag->child[dag->down[v]]] : nodes + 1;
        if (way_between(ways, slot, slots, tail, head, &place) >= 0) continue;
        ways[size] = (Way){.tail = tail, .head = head}, out[tail]++, in[head]++, out_sum[tail] += size, in_sum[head] += size, slot[place] = ++size;
    }
    I *ready = NEW(I, nodes + 1), end = 0, passed = 0;
    for (I x = 0; x < nodes; x++) if (in[x] == 1 && out[x] == 1) ready[end++] = x;
    while (end) {
        I x = ready[--end], before = in_sum[x], after = out_sum[x], tail = ways[before].tail, head = ways[after].head, length = 0, other;
        I most = ways[before].size + ways[after].size + 1;
        String *strings = NEW(String, most);
        passed++;
        for (I i = 0; i < most; i++) {
            I rest = i - ways[before].size - 1;
            String next = i < ways[before].size ? ways[before].strings[i] : rest < 0 ? block[x] : ways[after].strings[rest];
            while (length && !denser(strings[length - 1], next)) next = link(strings[--length], next);
            strings[length++] = next;
        }
        if ((other = way_between(ways, slot, slots, tail, head, &place)) >= 0) { /* merged by falling density */
            String *merged = NEW(String, length + ways[other].size);
            I i = 0, j = 0;
            while (i < length || j < ways[other].size)
                if (j == ways[other].size || (i < length && !denser(ways[other].strings[j], strings[i]))) merged[i + j] = strings[i], i++;
                else merged[i + j] = ways[other].strings[j], j++;
            drop(strings), drop(ways[other].strings), strings = merged, length += ways[other].size;
            out[tail]--, in[head]--, out_sum[tail] -= before, in_sum[head] -= after;
            I both[] = {tail, head};
            for (int b = 0; b < 2; b++) if (both[b] < nodes && in[both[b]] == 1 && out[both[b]] == 1 && (!b || tail != head)) ready[end++] = both[b];
        } else { /* the way before is used again, so only the head's sum changes */
            other = before, ways[before].head = head, in_sum[head] += before - after;
            if (way_between(ways, slot, slots, tail, head, &place) < 0) slot[place] = before + 1;
        }
        ways[other].strings = strings, ways[other].size = length;
    }
    if (passed < nodes) return -1;
    String all = {0, 0, 0};
    if (out[nodes]) for (I w = out_sum[nodes] / out[nodes], i = 0; i < ways[w].size; i++) all = link(all, ways[w].strings[i]);
    return all.sum;
}

/* Rules bound, elimination and modules */

static I largest_area(const Part *part, const Value *proof, const Profile *maxima, const Marks *marks) {
    I own = sum(part->cumulative), best = series_parallel_area(&part->dag);
    if (best < 0 && maxima) best = search(&part->dag, *maxima, own, get(proof, "swaps"), marks, 0);
    require(best == own && own == whole(proof, "area"), "the order does not have the largest area");
    return own;
}

static Certified below(const Part *part, Profile bound, const Value *proof);

static I piece_slack(const Part *part, Profile bound, const Value *proof) { /* how far the area is below the bound, at least */
    const Value *pieces = get(proof, "pieces");
    if (!pieces || !pieces->size) return 0;
    I k = part->k, *order = NEW(I, k), *ends = NEW(I, pieces->size + 1), *last, *home = NEW(I, k + 1), m = 0, area = 0, every = bound.at[bound.steps], size = 0;
    char *seen = NEW(char, k);
    int good = 1;
    for (I i = 0; i < pieces->size; i++) {
        const Value *own = get(pieces->items + i, "order");
        good = good && own->size > 0;
        for (I j = 0; good && j < own->size; j++) {
            I v = number(&part->dag, own->items[j].text);
            good = v >= 0 && v < k && !seen[v];
            if (good) seen[v] = 1, home[size] = i, order[size++] = v;
        }
        ends[i + 1] = size;
    }
    require(good && size == k, "the pieces do not have every task once");
    Part chain = make_part(&part->dag, order, k);
    const Dag *dag = &chain.dag;
    for (I t = 0; t <= k; t++) good = good && (Wide)bound.at[t] * k <= (Wide)t * every;
    for (I i = 0; i <= pieces->size; i++) good = good && (Wide)chain.cumulative.at[ends[i]] * k == (Wide)ends[i] * every;
    require(good, "a piece is not as dense as its module");
    last = NEW(I, dag->n);
    I *tails = NEW(I, dag->m), *heads = NEW(I, dag->m);
    for (I i = 0; i < dag->m; i++) last[dag->child[i]] = MAX(last[dag->child[i]], dag->tail[i]);
    for (I i = 0; i < dag->m; i++) if (home[dag->tail[i]] == home[last[dag->child[i]]]) tails[m] = dag->tail[i], heads[m++] = dag->child[i];
    Dag inner = make_dag(dag->n, m, tails, heads, dag->id);
    for (I i = 0; i < pieces->size; i++) {
        const Value *entry = pieces->items + i;
        Part own = part_of_span(&inner, ends[i], ends[i + 1]);
        require(!get(entry, "pieces") && !rules(entry, "chain"), "a piece is not proved separately");
        Profile most = new_profile(own.k);
        for (I t = 0; t <= own.k; t++) most.at[t] = MIN((I)((Wide)t * every / k), own.cumulative.at[own.k]);
        Certified proved = rules(entry, "bound") ? below(&own, most, entry) : certify(&own, entry);
        area += sum(proved.bound) - proved.slack + chain.cumulative.at[ends[i]] * own.k;
        drop_part(&own);
    }
    return MAX(0, sum(bound) - area);
}

static Certified below(const Part *part, Profile bound, const Value *proof) { /* a module under a ceiling */
    Certified result = {probed(&part->dag, bound, get(proof, "probes")), 0, 0};
    I slack = get(proof, "area") ? sum(result.bound) - largest_area(part, proof, NULL, NULL) : 0;
    result.slack = MAX(slack, piece_slack(part, result.bound, proof));
    return result;
}

static Certified by_order(const Part *part, const Value *proof) { /* rule elimination */
    Certified result = {by_elimination(part, get(proof, "elimination")), 0, 0};
    const Value *marked = get(proof, "marked"), *swaps = get(proof, "swaps"), *refuted = get(proof, "refuted");
    Marks marks = read_marks(part, marked);
    for (I s = 0; swaps && s < swaps->size; s++) { /* a swap is its own inverse; every arc goes to an arc */
        const Dag *dag = &part->dag;
        const Value *pairs = swaps->items + s;
        I *image = NEW(I, dag->n);
        char *used = NEW(char, dag->n);
        int good = 1;
        for (I v = 0; v < dag->n; v++) image[v] = v;
        for (I j = 0; good && j < pairs->size; j++) {
            I u = number(dag, pairs->items[j].items[0].text), v = number(dag, pairs->items[j].items[1].text);
            good = u >= 0 && v >= 0 && u != v && !used[u] && !used[v];
            if (good) image[u] = v, image[v] = u, used[u] = used[v] = 1;
        }
        for (I j = 0; good && j < dag->m; j++) good = has_arc(dag, image[dag->tail[j]], image[dag->child[j]]);
        require(good, "parts said to be alike are not");
        drop(image), drop(used);
    }
    I closed = get(proof, "area") != NULL, slack = marked ? sum(result.bound) - marks.to_come[0] : 0;
    if (closed) slack = sum(result.bound) - largest_area(part, proof, &result.bound, &marks);
    result.slack = MAX(slack, piece_slack(part, result.bound, proof));
    result.impossible = refuted && refuted->whole;
    require(!result.impossible || result.slack > 0 || (!closed && !search(&part->dag, result.bound, 0, swaps, NULL, 1)), "an order attains the maxima");
    return result;
}

static int surpasses(const Part *part, const Value *better, Profile usual) {
    I *tasks = listed_tasks(&part->dag, better), rendered = 0;
    char *done = NEW(char, part->dag.n);
    int good = better->size < usual.steps + 1;
    for (I i = 0; good && i < better->size; i++) {
        good = tasks[i] >= 0 && !done[tasks[i]];
        if (good) done[tasks[i]] = 1;
    }
    require(good, "no set of tasks");
    for (I v = 0; v < part->dag.n; v++) {
        int satisfied = 1;
        for (I j = part->dag.up[v]; j < part->dag.up[v + 1]; j++) satisfied = satisfied && done[part->dag.parent[j]];
        rendered += satisfied && parents(&part->dag, v);
        good = good && (!done[v] || (satisfied && children(&part->dag, v)));
    }
    return good && rendered > usual.at[better->size];
}

static Certified by_modules(const Part *part, const Value *proof) {
    const Dag *dag = &part->dag;
    const Value *shares = get(proof, "shares"), *corners = get(shares, "modules"), *entries = get(proof, "modules"), *split = get(proof, "split");
    Certified result = {shares_bound(dag, shares), 0, 0};
    int strict = corners->size == entries->size, exact = 1, good = 1;
    for (I i = 1; i < corners->size; i++)
        strict = strict && (Wide)whole(corners->items + i - 1, "p") * whole(corners->items + i, "q") > (Wide)whole(corners->items + i, "p") * whole(corners->items + i - 1, "q");
    require(strict, "the modules are not those of the strict corners");
    I *done = homes(dag, corners, "tasks"), *out = homes(dag, corners, "renders"), *tails = NEW(I, dag->m), *heads = NEW(I, dag->m), m = 0, area = 0, steps = 0;
    for (I i = 0; i < dag->m; i++) {
        I before = done[dag->tail[i]], rendered = out[dag->child[i]], after = done[dag->child[i]];
        good = good && before <= rendered && (rendered <= after || after < 0);
        if (before == rendered) tails[m] = dag->tail[i], heads[m++] = dag->child[i];
    }
    require(good, "a module depends on a later one");
    Dag inner = make_dag(dag->n, m, tails, heads, dag->id);
    Profile usual = new_profile(result.bound.steps), *alone = NEW(Profile, entries->size);
    for (I i = 0; i < entries->size; i++) {
        const Value *entry = entries->items + i, *order = get(entry, "order");
        I *tasks = listed_tasks(dag, order), *seen = NEW(I, dag->n);
        good = order->size == get(corners->items + i, "tasks")->size;
        for (I j = 0; good && j < order->size; j++) good = tasks[j] >= 0 && done[tasks[j]] == i && !seen[tasks[j]]++;
        require(good, "a module's order does not have its tasks");
        Part own = make_part(&inner, tasks, order->size);
        int open = rules(entry, "bound");
        Certified proved = open ? below(&own, ceiling(corners->items + i), entry) : certify(&own, entry);
        area += sum(proved.bound) - proved.slack + usual.at[steps] * own.k;
        for (I t = 1; t <= own.k; t++) usual.at[steps + t] = usual.at[steps] + proved.bound.at[t];
        steps += own.k, alone[i] = proved.bound;
        exact = exact && (!open || same(own.cumulative, proved.bound)), result.impossible |= proved.impossible;
        drop(tasks), drop(seen), drop_part(&own);
    }
    if (get(proof, "blocks")->whole) lower(result.bound, bound_by_parts(all_maxima(part), part->blocks));
    if (split && split->whole) lower(result.bound, convolve_all(alone, entries->size));
    probed(dag, result.bound, get(proof, "probes"));
    if (get(proof, "elimination")) {
        result.bound = by_elimination(part, get(proof, "elimination"));
        for (I t = 0; exact && t <= usual.steps; t++) result.impossible |= result.bound.at[t] > usual.at[t];
    }
    if (get(proof, "better")) {
        require(exact && surpasses(part, get(proof, "better"), usual), "no set surpasses the modules");
        result.impossible = 1;
    }
    result.slack = MAX(0, sum(result.bound) - area);
    return result;
}

static Certified certify(const Part *part, const Value *proof) {
    static const struct { const char *rule; Certified (*by)(const Part *, const Value *); } all[] = {
        {"chain", by_chain}, {"units", by_units}, {"exact", by_sets}, {"sum", by_sum}, {"modules", by_modules}, {"elimination", by_order}};
    for (int i = 0; i < 6; i++) if (rules(proof, all[i].rule)) return all[i].by(part, proof);
    refute("the rule outside modules must be chain, units, exact, sum, modules or elimination, got 'bound'");
    exit(1);
}

/* Shortcuts: arcs beside a longer path, found by marking in the order of arcs backwards */

static char *shortcuts(const Dag *dag) {
    char *mask = NEW(char, dag->m);
    I *order = first_come(dag), *place = NEW(I, dag->n), *mark = NEW(I, dag->n), *queue = NEW(I, dag->n);
    for (I i = 0; i < dag->n; i++) place[order[i]] = i;
    for (I u = 0; u < dag->n; u++) { /* all that is below a child and not beyond the last child */
        I end = 0, beyond = -1;
        if (children(dag, u) < 2) continue;
        for (I j = dag->down[u]; j < dag->down[u + 1]; j++) beyond = MAX(beyond, place[dag->child[j]]), queue[end++] = dag->child[j];
        for (I i = 0; i < end; i++)
            for (I j = dag->down[queue[i]]; j < dag->down[queue[i] + 1]; j++) {
                I v = dag->child[j];
                if (mark[v] != u + 1 && place[v] <= beyond) {
                    mark[v] = u + 1;
                    if (!has_arc(dag, u, v)) queue[end++] = v;
                }
            }
        for (I j = dag->down[u]; j < dag->down[u + 1]; j++) mask[j] = mark[dag->child[j]] == u + 1;
    }
    drop(order), drop(place), drop(mark), drop(queue);
    return mask;
}

/* Files between tasks: a flow adds up what exists in each case */

typedef struct { I writer, size, readers, *reader; char *name; } File;
static File *files;
static I file_count;

static int by_name(const void *a, const void *b) { return strcmp(((const File *)a)->name, ((const File *)b)->name); }
static File *file_of(char *name) {
    File key = {.name = name};
    return bsearch(&key, files, (size_t)file_count, sizeof(File), by_name);
}

static char *text_of_file(const Value *file) {
    const Value *name = file->type == OBJECT ? get(file, "name") : file;
    expect(name && name->type == TEXT, "a file needs a name");
    return name->text;
}

static void read_files(const Value *top, const Dag *dag) {
    const Value *tasks = get(top, "tasks"), *sizes = get(top, "files");
    I room = 16, used = 0, known = 0;
    files = NEW(File, room);
    for (I v = 0; tasks && v < tasks->size; v++) {
        const Value *list = get(tasks->items + v, "outputs");
        for (I i = 0; list && list->type == LIST && i < list->size; i++) {
            if (used == room) files = grow(files, used, room *= 2, sizeof(File));
            files[used++] = (File){.writer = v, .name = text_of_file(list->items + i)};
        }
    }
    qsort(files, (size_t)used, sizeof(File), by_name);
    for (I i = 0; i < used; i++) {
        expect(!i || strcmp(files[i].name, files[i - 1].name), "two tasks write the file %s", files[i].name);
        files[i].reader = NEW(I, 4);
    }
    file_count = used;
    for (I v = 0; tasks && v < tasks->size; v++) {
        const Value *list = get(tasks->items + v, "inputs");
        for (I i = 0; list && list->type == LIST && i < list->size; i++) {
            File *file = file_of(text_of_file(list->items + i));
            if (!file || file->writer == v || (file->readers && file->reader[file->readers - 1] == v)) continue;
            if (!has_arc(dag, file->writer, v)) {
                char *after = reached(dag, &file->writer, 1, 1);
                int there = after[v];
                drop(after);
                if (!there) continue;
            }
            if (file->readers >= 4 && !(file->readers & (file->readers - 1))) file->reader = grow(file->reader, file->readers, 2 * file->readers, sizeof(I));
            file->reader[file->readers++] = v;
        }
    }
    for (I i = used = 0; i < file_count; i++) if (files[i].readers) files[used++] = files[i];
    file_count = used;
    for (I i = 0; i < file_count; i++) {
        const Value *size = sizes ? get(sizes, files[i].name) : NULL;
        expect(!size || size->type == WHOLE, "the size of a file is not a number");
        files[i].size = size ? size->whole : 1, known += size != NULL;
    }
    expect(!known || known == file_count, "the size of some files is unknown");
    if (file_count) return;
    files = NEW(File, dag->n);
    for (I v = 0; v < dag->n; v++)
        if (children(dag, v)) files[file_count++] = (File){v, 1, children(dag, v), dag->child + dag->down[v], names[dag->id[v]]};
    qsort(files, (size_t)file_count, sizeof(File), by_name);
}

static void check_bound_on_space(const Dag *dag, const Value *bound) {
    const Value *cases = get(bound, "cases");
    I size = cases->size, bytes = whole(bound, "bytes"), *tasks = NEW(I, size), *first = NEW(I, file_count);
    int begins = (int)whole(bound, "first");
    char *chosen = NEW(char, dag->n);
    for (I i = 0; i < size; i++) {
        expect((tasks[i] = number(dag, get(cases->items + i, "task")->text)) >= 0, "unknown task in a bound on bytes");
    }
    for (I i = 0; i < size; i++) { require(!chosen[tasks[i]], "a task has two cases"); chosen[tasks[i]] = 1; }
    require(size || bytes <= 0, "a bound needs a case");
    for (I i = 0; i < file_count; i++) /* files of one writer with the same readers are one */
        for (first[i] = 0; files[first[i]].writer != files[i].writer
             || !same_row(files[first[i]].reader, files[first[i]].readers, files[i].reader, files[i].readers);) first[i]++;
    for (I c = 0; c < size; c++) {
        const Value *flow = get(cases->items + c, "files"), *returned = get(cases->items + c, "returned");
        I v = tasks[c], *some = NEW(I, size);
        Wide least = 0, *gained = NEW(Wide, dag->n), *sent = NEW(Wide, file_count), *room = NEW(Wide, file_count);
        some[0] = v;
        for (I i = 0, at = 1; i < size; i++) if (i != c) some[at++] = tasks[i];
        char *inside = reached(dag, some, begins ? 1 : size, 0), *outside = reached(dag, some, begins ? size : 1, 1);
        inside[v] = 0;
        for (I u = 0; u < dag->n; u++) require(!inside[u] || !outside[u], "no order has this case");
        for (I i = 0; i < flow->size; i++) {
            File *file = file_of(flow->items[i].items[0].text);
            I amount = flow->items[i].items[2].whole, reader;
            require(file && amount >= 0, "a file passes nothing");
            expect((reader = number(dag, flow->items[i].items[1].text)) >= 0, "unknown task in a bound on bytes");
            int reads = 0;
            for (I j = 0; j < file->readers; j++) reads = reads || file->reader[j] == reader;
            require(reads, "a file passes something to a task that does not read it");
            sent[first[file - files]] += amount, gained[file->writer] -= amount, gained[reader] += amount;
        }
        for (I i = 0; i < file_count; i++) {
            room[first[i]] += files[i].size;
            if (files[i].writer == v) least += files[i].size;
        }
        for (I i = 0; i < file_count; i++) require(sent[i] <= room[i], "a file passes more than its size");
        for (I i = 0; i < returned->size; i++) {
            I task = number(dag, returned->items[i].items[0].text), above = number(dag, returned->items[i].items[1].text), amount = returned->items[i].items[2].whole;
            expect(task >= 0 && above >= 0, "unknown task in a bound on bytes");
            require(amount >= 0 && has_arc(dag, above, task), "a task returns something to no parent");
            gained[task] -= amount, gained[above] += amount;
        }
        for (I u = 0; u < dag->n; u++) if (outside[u]) least += gained[u]; else if (!inside[u]) least += MIN(0, gained[u]);
        require(bytes <= least, "fewer bytes exist");
        drop(some), drop(gained), drop(sent), drop(room), drop(inside), drop(outside);
    }
}

static I peak_of(const Dag *dag, const Value *order) { /* the tasks run one at a time */
    I *place = NEW(I, dag->n), *change = NEW(I, dag->n + 2), now = 0, most = 0;
    for (I i = 0; i < order->size; i++) place[number(dag, order->items[i].text)] = i;
    for (I i = 0; i < file_count; i++) {
        I last = 0;
        for (I j = 0; j < files[i].readers; j++) last = MAX(last, place[files[i].reader[j]]);
        change[place[files[i].writer]] += files[i].size, change[last + 1] -= files[i].size;
    }
    for (I t = 0; t <= dag->n; t++) now += change[t], most = MAX(most, now);
    drop(place), drop(change);
    return most;
}

static void check_space(const Value *top, const Dag *dag, const Value *plan) {
    const Value *bound = get(plan, "space"), *orders = get(plan, "orders");
    for (I i = 0; orders && i < orders->size; i++) require(bound || !get(orders->items + i, "peak"), "the peaks have no bound");
    if (!bound) return;
    fit(bound, get(&structure, "space"), "the bound");
    read_files(top, dag);
    instead = "the bound on the size of files between tasks does not hold";
    check_bound_on_space(dag, bound);
    instead = NULL;
    for (I i = 0; orders && i < orders->size; i++) {
        const Value *peak = get(orders->items + i, "peak");
        if (!peak) continue;
        require(peak->whole >= whole(bound, "bytes"), "an order needs less space than the lower bound");
        require(get(plan, "workers") || peak->whole == peak_of(dag, get(orders->items + i, "order")), "the peak is not that of the order");
    }
}

/* The plan */

static Profile profile_of(const Dag *dag, const Value *order) {
    I *place = NEW(I, dag->n), *tasks = listed_tasks(dag, order);
    for (I v = 0; v < dag->n; v++) place[v] = -1;
    for (I i = 0; i < order->size; i++) {
        expect(tasks[i] >= 0, "there is no task named %s", quoted(order->items[i].text, 1));
        expect(place[tasks[i]] < 0, "duplicate task %s", quoted(order->items[i].text, 1));
        place[tasks[i]] = i;
    }
    for (I v = 0; v < dag->n; v++) require(place[v] >= 0, "not a schedule: %s is missing", quoted(name_of(dag, v), 1));
    Profile profile = eligible(dag, place);
    drop(place), drop(tasks);
    return profile;
}

static void agree(const Value *claim, const char *key, double value, const char *origin) {
    require(get(claim, key)->real == value, "the %s is not what follows from the %s", key, origin);
}

static void agree_list(const Value *claim, const char *key, Profile profile, const char *origin) {
    const Value *list = get(claim, key);
    int equal = list->size == profile.steps + 1;
    for (I t = 0; equal && t <= profile.steps; t++) equal = list->items[t].whole == profile.at[t];
    require(equal, "the %s is not what follows from the %s", key, origin);
}

static void check_orders(const Value *plan, const Dag *dag) {
    const Value *orders = get(plan, "orders"), *used = get(plan, "used"), *own = get(plan, "order");
    I size = orders ? orders->size : 0, there = !size && !used;
    for (I i = 0; i < size; i++) {
        const char *name = get(orders->items + i, "name")->text;
        for (I j = 0; j < i; j++) expect(strcmp(name, get(orders->items + j, "name")->text), "two orders have the same name");
        there = there || (used && !strcmp(name, used->text));
    }
    expect(there, "the order used is not among the orders");
    for (I i = 0; i < size; i++) {
        const Value *order = get(orders->items + i, "order");
        int equal = order->size == own->size;
        for (I j = 0; equal && j < own->size; j++) equal = !strcmp(order->items[j].text, own->items[j].text);
        require(equal || !order->size || strcmp(get(orders->items + i, "name")->text, "ready"), "the order 'ready' is not the order of the plan");
    }
    for (I i = 0; i < size; i++) {
        char origin[MOST_NAME + 100];
        snprintf(origin, sizeof origin, "order %s", quoted(get(orders->items + i, "name")->text, 1));
        Profile profile = profile_of(dag, get(orders->items + i, "order"));
        agree(orders->items + i, "average", (double)sum(profile) / (double)MAX(1, dag->n), origin);
        agree(orders->items + i, "share", (double)sum(profile) / (double)MAX(1, whole(plan, "area_bound")), origin);
        drop(profile.at);
    }
}

static void check_summary(const Value *plan, const Dag *dag, I area) {
    const Value *schema = get(plan, "schema");
    expect(!schema || (schema->whole >= 1 && schema->whole <= 2), "the plan has another schema");
    I *order = first_come(dag), *place = NEW(I, dag->n);
    for (I i = 0; i < dag->n; i++) place[order[i]] = i;
    I usual = sum(eligible(dag, place));
    double steps = (double)MAX(1, dag->n);
    if (get(plan, "average")) agree(plan, "average", (double)area / steps, "order");
    if (get(plan, "average_first_come")) agree(plan, "average_first_come", (double)usual / steps, "order");
    if (get(plan, "gain")) agree(plan, "gain", usual ? (double)area / (double)usual - 1 : 0.0, "order");
}

static void check_proof(const Value *plan, const Dag *dag, Profile profile) {
    const Value *proof = get(plan, "proof"), *order = get(proof, "order") ? get(proof, "order") : get(plan, "order");
    char *mask = shortcuts(dag), *seen = NEW(char, dag->n);
    I m = 0, k = 0, working = 0, *tails = NEW(I, dag->m), *heads = NEW(I, dag->m), *tasks = listed_tasks(dag, order), *nonsinks = NEW(I, dag->n), gap = 0;
    for (I i = 0; i < dag->m; i++) if (!mask[i]) tails[m] = dag->tail[i], heads[m++] = dag->child[i];
    Dag bare = make_dag(dag->n, m, tails, heads, dag->id);
    for (I i = 0; i < order->size; i++) {
        expect(tasks[i] >= 0 && !seen[tasks[i]], "the order of the proof has a wrong task");
        seen[tasks[i]] = 1;
        if (children(dag, tasks[i])) nonsinks[k++] = tasks[i];
    }
    Part part = make_part(&bare, nonsinks, k);
    for (I v = 0; v < dag->n; v++) working += children(dag, v) > 0;
    require(k == working, "the proof's order does not have every task that others depend on");
    agree(plan, "tasks", (double)dag->n, "workflow"), agree(plan, "arcs", (double)dag->m, "workflow");
    agree(plan, "shortcuts", (double)(dag->m - m), "workflow"), agree(plan, "blocks", (double)part.blocks, "workflow");
    Certified proved = certify(&part, proof);
    Profile bound = new_profile(dag->n);
    for (I t = 0; t <= dag->n; t++) bound.at[t] = profile.at[0] - t + proved.bound.at[MIN(t, k)], gap |= bound.at[t] != profile.at[t];
    const char *verdict = proved.impossible ? "impossible" : gap ? "bounded" : "optimal";
    require(!strcmp(get(plan, "verdict")->text, verdict), "the verdict is not what follows from the proof");
    agree_list(plan, "upper_bound", bound, "proof"), agree(plan, "area_bound", (double)(sum(bound) - proved.slack), "proof");
    printf("Valid: the proof holds (%s).\n", proved.impossible ? "no single order is best" : gap ? "not decided" : "optimal");
}

int main(int size, char **words) {
    expect(size == 3, "usage: check DAG PLAN");
    structure = parse(STRUCTURE);
    Value top = read_file(words[1]), plan = read_file(words[2]);
    Dag dag = read_dag(&top);
    char print[40];
    fit(&plan, get(&structure, "plan"), "the plan");
    fingerprint(&dag, print);
    expect(!strcmp(get(&plan, "fingerprint")->text, print), "this plan belongs to another workflow");
    Profile profile = profile_of(&dag, get(&plan, "order"));
    agree_list(&plan, "profile", profile, "order"), agree(&plan, "area", (double)sum(profile), "order");
    check_summary(&plan, &dag, sum(profile));
    check_orders(&plan, &dag);
    const Value *orders = get(&plan, "orders"), *finish = get(&plan, "certificate");
    for (I i = -1; !finish && orders && i < orders->size; i++)
        require(!get(i < 0 ? &plan : orders->items + i, i < 0 ? "bound" : "makespan"), "the finish has no certificate");
    if (!finish && !orders) require(!get(&plan, "bound"), "the finish has no certificate");
    check_space(&top, &dag, &plan);
    expect(!finish, "the bound on the finish");
    check_proof(&plan, &dag, profile);
    return 0;
}
