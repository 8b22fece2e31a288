// Questions before an act: a dialog of the page that names the object and the effect. Without JavaScript the act is done at once.
(() => {
  "use strict";
  const dialog = document.getElementById("confirm");
  let asked = null;
  let agreed = null;

  // {count:name}: how many boxes of that name are ticked; {value:name}: what is typed.
  function filled(text, form) {
    return text.replace(/\{(count|value):(\w+)\}/g, (_, what, name) => {
      const all = new FormData(form).getAll(name);
      return what === "count" ? all.length.toLocaleString("en-US") : (all[0] ?? "");
    });
  }
  function ask(question, form, submitter) {
    const [, title, effect] = /^(.*?\?)(?:\s+(.*))?$/s.exec(question) ?? [null, question, ""];
    const word = submitter?.textContent.trim() ?? "";
    const act = dialog.querySelector("[data-agree]");
    dialog.querySelector("h2").textContent = title;
    dialog.querySelector("p").textContent = effect ?? "";
    act.textContent = /\p{L}{2}/u.test(word) ? word.replace(/…$/, "") : (submitter?.title || submitter?.getAttribute("aria-label") || "Continue");
    act.classList.toggle("danger", Boolean(submitter?.matches(".danger")));
    act.classList.toggle("primary", !submitter?.matches(".danger"));
    asked = { form, submitter };
    dialog.showModal();
    dialog.querySelector("[data-close]").focus();
  }
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (!question || !dialog) return;
    if (agreed === event.target) return void (agreed = null);
    event.preventDefault();
    ask(filled(question, event.target), event.target, event.submitter);
  });
  dialog?.querySelector("[data-agree]").addEventListener("click", () => {
    const { form, submitter } = asked;
    dialog.close();
    if (!form.isConnected) return;
    agreed = form;
    form.requestSubmit(submitter?.isConnected ? submitter : undefined);
    agreed = null;
  });
})();
