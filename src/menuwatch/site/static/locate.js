/* Fills in where the visitor is, rounded to about 1 km, when they ask for it. The forms work without it. */
for (const button of document.querySelectorAll("[data-locate]")) {
  if (!navigator.geolocation || !window.isSecureContext) continue;
  const form = button.closest("form");
  const said = form.querySelector("[data-locate-said]");
  button.hidden = false;
  button.addEventListener("click", () => {
    said.hidden = true;
    button.disabled = true;
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        button.disabled = false;
        form.elements.near.value = `${coords.latitude.toFixed(2)},${coords.longitude.toFixed(2)}`;
        form.requestSubmit();
      },
      (error) => {
        button.disabled = false;
        const reason =
          error.code === error.PERMISSION_DENIED
            ? "Your browser blocked access to your location."
            : "Your location is not available.";
        said.textContent = `${reason} Enter a city, ZIP or postal code instead.`;
        said.hidden = false;
      },
      { timeout: 15_000, maximumAge: 300_000 },
    );
  });
}
