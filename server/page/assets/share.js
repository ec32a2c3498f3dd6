// Opens a link to a job's page: what is behind the `#` of the address is sent as the form's field, and taken out of the address.
"use strict";
(() => {
  const form = document.getElementById("open"), field = document.getElementById("secret");
  const open = () => {
    // The job's page itself, which has this form where no link is open, has other words behind the `#`.
    const secret = location.pathname.endsWith("/share") ? location.hash.slice(1) : "";
    if (!secret) return;
    history.replaceState(null, "", location.pathname);
    field.value = secret;
    form.submit();
  };
  // Somebody may paste the whole link into the field.
  form.addEventListener("submit", () => { field.value = field.value.split("#").pop(); });
  addEventListener("hashchange", open);
  open();
})();
