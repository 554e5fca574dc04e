// The first link for keyboard users, which skips to the content.
export function Skip() {
  return (
    <a
      class="skip"
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}
    >
      Skip to the content
    </a>
  );
}
