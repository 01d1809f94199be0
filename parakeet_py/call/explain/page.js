// A line that is clicked is marked wherever it occurs: in the source, at its kernels, in every stage. The page says the
// same without this, by links. In a notebook the frame around it is as high as it is, up to a limit.
{
  const page = document.querySelector(".parakeet");
  const frame = window.frameElement;
  if (frame) new ResizeObserver(() => { frame.style.height = `${Math.min(page.offsetHeight, 900) + 2}px`; }).observe(page);
  const select = (line, from) => {
    page.querySelectorAll(".selected").forEach((one) => one.classList.remove("selected"));
    const marked = page.querySelectorAll(`[data-line="${line}"], [data-lines~="${line}"]`);
    marked.forEach((one) => one.classList.add("selected"));
    for (const box of [page.querySelector(".beside"), ...page.querySelectorAll(".stage[open] pre")]) {
      const first = box && [...marked].find((one) => box.contains(one) && one.closest("pre") === box.closest("pre"));
      if (first && !box.contains(from)) {
        const by = first.getBoundingClientRect().top - box.getBoundingClientRect().top;
        box.scrollTop += by - box.clientHeight / 4;
      }
    }
    if (!from.closest(".code")) page.querySelector(`.code [data-line="${line}"]`)?.scrollIntoView({ block: "nearest" });
  };
  page.addEventListener("click", (event) => {
    const hit = event.target.closest(".code [data-line], .stage [data-line]");
    if (hit && getSelection().isCollapsed) select(hit.dataset.line, event.target);
  });
  page.addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = event.target.matches(".number") && step && event.target.closest("li")[step];
    if (next) {
      next.querySelector(".number").focus();
      select(next.dataset.line, next);
      event.preventDefault();
    }
  });
  page.querySelectorAll(".stage").forEach((stage) =>
    stage.addEventListener("toggle", () => {
      const line = page.querySelector(".code .selected")?.dataset.line;
      if (stage.open && line) select(line, page);
    }));
}
