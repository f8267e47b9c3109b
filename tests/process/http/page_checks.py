"""What holds for the page at any time: names for a screen reader, contrast, width, no markup from names."""

ACCESSIBLE = """(() => {
  const found = [];
  const say = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 120)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  for (const [role, selector] of Object.entries({banner: 'body > header', navigation: 'nav[aria-label]', main: 'main',
                                                 contentinfo: 'body > footer', status: '[role=status][aria-live=polite]'}))
    if (all(selector).length !== 1) found.push(`${all(selector).length} of ${role}`);
  if (!document.documentElement.lang || !document.title) found.push('no language or no title');
  if (all('h1').length !== 1) found.push('not one h1');
  let level = 1;
  for (const heading of all('h1, h2, h3, h4')) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) say('a level of headings is left out', heading);
    level = next;
  }
  for (const table of all('table')) {
    if (!table.caption?.textContent) say('no caption', table);
    for (const cell of table.querySelectorAll('th')) if (!cell.scope) say('no scope', cell);
  }
  for (const section of all('section')) if (!document.getElementById(section.getAttribute('aria-labelledby'))) say('no name', section);
  for (const region of all('[role=region]')) if (!region.getAttribute('aria-label')) say('no name', region);
  for (const image of all('svg')) {
    const [name, says] = (image.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id));
    if (image.getAttribute('role') !== 'img' || !name?.textContent || !says?.textContent) say('no text for an image', image);
  }
  for (const control of all('button, select, input')) if (!control.innerText.trim() && !control.labels?.length) say('no label', control);
  for (const select of all('select')) if (!select.labels.length) say('no label', select);
  for (const element of all('[tabindex]')) if (element.tabIndex > 0) say('a tab order of its own', element);
  const ids = all('[id]').map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`id ${id} twice`);
  for (const link of all('a[href^="#"]')) if (!document.querySelector(link.getAttribute('href'))) say('leads nowhere', link);
  return found;
})()"""

UNREADABLE = """(() => {
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  let texts = 0;
  for (const element of document.querySelectorAll('body *')) {
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (!isText || !box.width || element.closest('title, desc, option, noscript, .skip, .unseen')) continue;
    const style = getComputedStyle(element);
    const a = luminance(numbers(element.ownerSVGElement ? style.fill : style.color));
    const b = luminance(behind(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    texts += 1;
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)}: ${element.textContent.slice(0, 40)}`);
    if (parseFloat(style.fontSize) < 11) found.push(`${style.fontSize}: ${element.textContent.slice(0, 40)}`);
  }
  return {texts, found};
})()"""


def accessible(browser):
    found = browser.run(ACCESSIBLE)
    # The tree that a screen reader gets, as the browser computes it.
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    found += [f"no {role} in the tree" for role in ("banner", "navigation", "main", "contentinfo", "status") if role not in roles]
    for node in nodes:
        needs_name = node["role"]["value"] in ("button", "image", "table", "region", "combobox", "link")
        if needs_name and not node["ignored"] and not node.get("name", {}).get("value"):
            found.append(f"no name: {node['role']['value']}")
    assert not found, found


def readable(browser, what):
    result = browser.run(UNREADABLE)
    assert result["texts"] > 100 and not result["found"], (what, result)


def fits(browser, width):
    """Nothing makes the page wider than the screen, and no text is cut off at the right."""
    wide = browser.run("document.documentElement.scrollWidth")
    beyond = browser.run("[...document.querySelectorAll('main > *, section > *, header *, nav *, figure *:not(svg *)')]"
                         f".filter(e => e.getBoundingClientRect().right > {width} + 0.5).map(e => e.outerHTML.slice(0, 100))")
    assert wide <= width and not beyond, (wide, beyond)


def no_markup(browser):
    assert browser.run("document.title") == "Leasehold", "a name ran as a script"
    assert browser.run("document.querySelectorAll('img, script:not([src=\"main.js\"])').length") == 0, "a name became an element"


def tab_through(browser):
    """Presses Tab until the focus is where it was; marks what it reached, and requires a visible focus."""
    browser.run("document.activeElement.blur(); document.querySelectorAll('[data-reached]').forEach(e => delete e.dataset.reached)")
    for _ in range(200):
        browser.press("Tab")
        step = browser.run("(() => { const e = document.activeElement; const known = 'reached' in e.dataset; e.dataset.reached = '';"
                           " return {known, body: e === document.body, outline: getComputedStyle(e).outlineStyle, what: e.outerHTML.slice(0, 100)} })()")
        if step["known"] or step["body"]:
            break
        assert step["outline"] != "none", step
    return browser.run("document.querySelectorAll('[data-reached]').length")
