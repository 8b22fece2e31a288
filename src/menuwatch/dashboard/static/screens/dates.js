// Days are typed and shown as YYYY-MM-DD, which the browser's own field shows in the format of its language; its calendar is kept.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-pick]");
  if (!button) return;
  const [field, calendar] = button.parentElement.querySelectorAll("input");
  calendar.value = field.value;
  calendar.onchange = (change) => {
    // The field's own change is what the form hears of.
    change.stopPropagation();
    field.value = calendar.value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  };
  calendar.showPicker();
});
