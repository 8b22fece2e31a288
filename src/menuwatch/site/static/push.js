/* Offers notifications of this browser in the form of an alert, where the browser can show them. The form works without it. */
for (const form of document.querySelectorAll("form[data-push-key]")) {
  const choice = form.querySelector("[data-push]");
  if (!choice || !("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) continue;
  choice.hidden = false;
  const said = form.querySelector("[data-push-said]");
  form.addEventListener("submit", async (event) => {
    if (form.elements.by.value !== "push" || form.elements.subscription.value) return;
    event.preventDefault();
    said.hidden = true;
    try {
      if ((await Notification.requestPermission()) !== "granted") {
        throw new Error("this browser does not allow notifications from this site");
      }
      await navigator.serviceWorker.register(form.dataset.pushWorker);
      const { pushManager } = await navigator.serviceWorker.ready;
      const options = { userVisibleOnly: true, applicationServerKey: await (await fetch(form.dataset.pushKey)).text() };
      const subscription = await pushManager.subscribe(options).catch(async () => {
        // An older subscription was made with another key.
        await (await pushManager.getSubscription())?.unsubscribe();
        return pushManager.subscribe(options);
      });
      form.elements.subscription.value = JSON.stringify(subscription);
      form.submit();
    } catch (error) {
      said.textContent = `Notifications could not be set up: ${error.message}. Choose another way.`;
      said.hidden = false;
    }
  });
}
