// The pieces of text whose contrast with what is behind them is too low, with the ratio.
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const mix = (layers) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const one of layers) {
    canvas.fillStyle = one;
    canvas.fillRect(0, 0, 1, 1);
  }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const luminance = (colour) => {
  const [r, g, b] = colour.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const found = [];
document.querySelectorAll("details").forEach((one) => one.removeAttribute("name"));
document.querySelectorAll("details").forEach((one) => { one.open = true; });
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  const behind = [];
  let opacity = 1;
  for (let one = element; one; one = one.parentElement) {
    behind.unshift(getComputedStyle(one).backgroundColor);
    opacity *= Number(getComputedStyle(one).opacity);
  }
  const ground = mix(behind);
  const text = mix([...behind, getComputedStyle(element).color]).map((one, n) => opacity * one + (1 - opacity) * ground[n]);
  const [low, high] = [luminance(ground), luminance(text)].sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) found.push([walker.currentNode.data.trim().slice(0, 40), ratio]);
}
return found;
