// To the clipboard. A page that came over plain HTTP from elsewhere has none: then the text is shown.
export async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    prompt('This page may not write to the clipboard; copy it from here:', text);
  }
}
