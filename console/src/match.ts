// How what someone types fits a label.

const IN_WORD = /[\p{L}\p{N}]/u;

/** Whether a word of the label begins with it, in small letters; nothing typed fits everything. */
export function beginsWord(label: string, wanted: string): boolean {
  const text = label.toLowerCase();
  for (let at = text.indexOf(wanted); at >= 0 && at < text.length; at = text.indexOf(wanted, at + 1)) {
    if (at === 0 || !IN_WORD.test(text.charAt(at - 1))) return true;
  }
  return false;
}
