/** Recognises questions in languages other than English, and has the notice for those that rules do not understand. */

export interface Foreign {
  /** Its letters, if they are not Latin: a Latin word in such a question is a name. */
  readonly script?: RegExp;
  /** Every noun is capitalised, so a capital does not indicate a name. */
  readonly hasCapitalNouns?: true;
  /** Function words. They are never searched for. */
  readonly fillers: ReadonlySet<string>;
  /** Explains, in the question's language, what the understudy is and what it can do with the question. */
  readonly notice: string;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));
const none: ReadonlySet<string> = new Set();

/**
 * Japanese (kana) comes before Chinese, because Japanese has Han characters too. Words that are also English do not
 * indicate another language.
 */
const LANGUAGES: readonly Foreign[] = [
  {
    script: /[\p{Script=Hiragana}\p{Script=Katakana}]/u,
    fillers: none,
    notice:
      "私は troupe に内蔵されたオフラインモデルです。決まった規則に従うだけで、言語モデルではなく、回答は英語です。日本語の質問は一部しか理解できません。本物のモデルの設定方法は `troupe models` で確認できます。",
  },
  {
    script: /\p{Script=Hangul}/u,
    fillers: none,
    notice:
      "저는 troupe에 내장된 오프라인 모델입니다. 정해진 규칙만 따르며 언어 모델이 아니고, 답변은 영어로 합니다. 한국어 질문은 일부만 이해합니다. 실제 모델을 설정하는 방법은 `troupe models`에서 볼 수 있습니다.",
  },
  {
    script: /\p{Script=Han}/u,
    fillers: none,
    notice:
      "我是 troupe 内置的离线模型：只按固定规则工作，不是语言模型，用英文回答。其他语言的问题我只能理解一部分。如何设置真正的模型：`troupe models`。",
  },
  {
    script: /\p{Script=Cyrillic}/u,
    fillers: none,
    notice:
      "Я встроенная офлайн-модель troupe: следую фиксированным правилам, не являюсь языковой моделью и отвечаю по-английски. Вопросы на других языках понимаю лишь отчасти; как подключить настоящую модель: `troupe models`.",
  },
  {
    hasCapitalNouns: true,
    fillers: words(
      `wie wo wer wen wem wessen warum wieso weshalb wozu wann ist sind wird werden wurde wurden macht machen tut kannst kann können könntest könnte
      du ich wir ihr sie mir mich uns dir der das dem des den die dieser diese dieses diesen diesem ein eine einen einem einer und oder nicht kein keine gibt
      hier dort zu zum zur mit von vom für auf aus bei nach über unter vor durch bitte mal denn doch auch noch nur schon sich es im am hat haben geht hilf helfen verstehen
      erkläre erklär beschreibe zeige zeig finde suche schreibe schreib behebe führe führt starte ruft nutzt verwendet benutzt definiert implementiert
      funktion funktionen klasse klassen methode methoden datei dateien ordner verzeichnis variable projekt programm quelltext stelle stellen`,
    ),
    notice:
      "Ich bin das eingebaute Offline-Modell von troupe: Ich folge festen Regeln, bin kein Sprachmodell und antworte auf Englisch. Fragen auf Deutsch verstehe ich nur zum Teil; wie man ein echtes Modell einrichtet, zeigt `troupe models`.",
  },
  {
    fillers: words(
      `qué cuál cuáles cómo dónde quién quiénes cuándo por porque para es son está están hay hace hacen puedes puede podrías
      el la los las un una unos unas este esta esto estos estas ese esa eso mi tu su y o no del al con sin en de se lo me te nos
      explica explícame describe muestra encuentra busca escribe ejecuto ejecutar llama usa utiliza definido definida implementa
      función funciones clase clases método archivo archivos carpeta proyecto repositorio código`,
    ),
    notice:
      "Soy el modelo sin conexión integrado en troupe: sigo reglas fijas, no soy un modelo de lenguaje y respondo en inglés. Solo entiendo algunas preguntas en español; `troupe models` muestra cómo configurar un modelo de verdad.",
  },
  {
    fillers: words(
      `quel quelle quels quelles comment où qui quand pourquoi est sont fait font peux peut pourrais puis
      le la les un une des du ce cette ces cet mon ton son je tu il elle nous vous et ou ne pas avec sans dans en de se sur par y
      explique décris montre trouve cherche écris lancer lance exécuter appelle utilise définie défini implémente
      fonction fonctions classe classes méthode fichier fichiers dossier projet dépôt`,
    ),
    notice:
      "Je suis le modèle hors ligne intégré à troupe : je suis des règles fixes, je ne suis pas un modèle de langage et je réponds en anglais. Je ne comprends qu'une partie des questions en français ; `troupe models` montre comment configurer un vrai modèle.",
  },
];

/** Fillers that also occur in English or in code. */
const SHARED = words(
  "die den des am an es hat me no in en de la le son variable classes lance describe comment font sin con ton par sans para mal mon un mit sur pas",
);
const FEW_WORDS = 3;

/** Returns the language of a question, or `undefined` for English and unknown languages. */
export function foreignIn(prompt: string): Foreign | undefined {
  const plain = prompt.replace(/`[^`\n]*`|"[^"\n]*"|https?:\/\/\S+|\S*[/\\_.]\S+/g, " ");
  const said = plain.toLowerCase().match(/[\p{L}\p{M}]+/gu) ?? [];
  const scripted = LANGUAGES.find(({ script }) => script?.test(plain));
  if (scripted) return scripted;
  const counts = LANGUAGES.map((language) => ({
    language,
    count: new Set(said.filter((word) => language.fillers.has(word) && !SHARED.has(word))).size,
  }));
  const [best] = counts.sort((a, b) => b.count - a.count);
  if (best === undefined || best.count === 0) return undefined;
  return best.count > 1 || said.length <= FEW_WORDS ? best.language : undefined;
}

/** Separates names from scripts without spaces, or with endings on foreign names: a name ends where they start. */
export function apartFromScripts(text: string): string {
  const other = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}]";
  return text.replace(new RegExp(`(?<=[A-Za-z0-9_$)])(?=${other})|(?<=${other})(?=[A-Za-z_$])`, "gu"), " ");
}
