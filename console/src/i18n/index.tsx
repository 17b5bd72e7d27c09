// The words of the console in the language that someone chose. A key that a language lacks does not compile.
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { remember, remembered } from '../memory';
import { en, type Dictionary } from './en';

export type Language = 'en' | 'zh';

interface Words {
  language: Language;
  t: Dictionary;
  speak(language: Language): void;
}

const WordsContext = createContext<Words | null>(null);

function preferred(): Language {
  const chosen = remembered('language') ?? navigator.language;
  return chosen.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export function WordsProvider({ children }: { children: ReactNode }) {
  const [chosen, choose] = useState(preferred);
  const [isBlank, setBlank] = useState(chosen === 'zh');
  const [chinese, setChinese] = useState<Dictionary | null>(null);
  // Until the words have come the page stays as it is, with all that was typed into it.
  const language = chinese ? chosen : 'en';
  useEffect(() => {
    document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
    if (chosen !== 'zh' || chinese) return;
    // Words that did not come are asked for again when they are chosen again.
    void import('./zh')
      .then(({ zh }) => setChinese(zh))
      .catch(() => choose('en'))
      .finally(() => setBlank(false));
  }, [chosen, language, chinese]);
  const words = useMemo<Words>(
    () => ({
      language,
      t: chinese && language === 'zh' ? chinese : en,
      speak(wanted) {
        remember('language', wanted);
        choose(wanted);
      },
    }),
    [language, chinese],
  );
  if (isBlank) return null;
  return <WordsContext.Provider value={words}>{children}</WordsContext.Provider>;
}

export function useWords(): Words {
  const words = useContext(WordsContext);
  if (!words) throw new Error('outside of the words');
  return words;
}

export function useT(): Dictionary {
  return useWords().t;
}

/** What the server says in both languages. */
export function useSpoken(): (english: string | null | undefined, chinese: string | null | undefined) => string {
  const { language } = useWords();
  return (english, chinese) => (language === 'zh' ? chinese : english) ?? english ?? '';
}
