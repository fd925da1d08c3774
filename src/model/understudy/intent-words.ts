/** Words that identify a task, in eight languages. Tables only. */

export const GREETING =
  /^(hi|hello|hey|yo|good (morning|afternoon|evening)|привет|здравствуй(те)?|hallo|guten (tag|morgen)|hola|buenos días|bonjour|salut|你好|您好|こんにちは|안녕하세요|안녕)( (there|all|troupe|understudy|wie geht'?s( dir)?|wie geht es dir|qué tal|ça va))?$/;

export const THANKS =
  /^(thanks?( you)?( (very|so) much| a lot)?|thx|ty|great|cool|ok(ay)?|perfect|nice|спасибо|danke( schön)?|gracias|merci( beaucoup)?|谢谢|ありがとう(ございます)?|감사합니다|고마워요?)( (thanks?( you)?|all|troupe))?$/;

export const HELP =
  /^(help|\?|what can you do|what do you do|who are you|what are you|how do (i|you) use (you|this|troupe)|what (are|is) your (abilities|capabilities|limits|limitations)|which model (is this|are you)|что ты умеешь|кто ты|помощь|was kannst du|wer bist du|hilfe|qué puedes hacer|quién eres|ayuda|que peux-tu faire|qui es-tu|aide|你能做什么|你是谁|帮助|(あなたは)?何ができますか|(あなたは)?誰ですか|ヘルプ|무엇을 할 수 있나요|뭘 할 수 있(어|나요)|누구세요|도움말|was können sie|kannst du mir (bei irgendetwas )?helfen)( for me| here)?$/;

export const RECAP =
  /\bsummary of (the|this|our) (conversation|session|chat)\b|\bsummari[sz]e (the|this|our) (conversation|session|chat)\b|history is being compacted/i;

export const CHANGES =
  /\bwhat('s| is| has| have|'ve)? ?(been |just |recently |was |were )?(changed|new)\b|\bwhat did (i|we|you|they) change|\b(recent|latest|last|uncommitted|pending|local|my|the) (\w+ )?(changes|commits?|edits)\b|\bgit (log|status|diff|history)\b|\bchange ?log\b|\bcommit history\b|\bwho (changed|committed)\b|что (изменилось|нового|поменялось|менялось)|(последние|недавние) (изменения|коммиты)|was (hat sich geändert|ist neu|wurde geändert)|letzten? (änderungen|commits)|qué (ha )?(cambió|cambiado|hay de nuevo)|(últimos|recientes) cambios|cambios recientes|qu'?est-ce qui a changé|quoi de neuf|(derniers|récents) (changements|commits)|changements récents|(什么|哪些)(变|改)|改了什么|(变更|改动|提交记录|最近的修改)|何が(変わ|変更)|(最近|最後)の(変更|コミット)|(무엇이|뭐가) (바뀌|변경)|최근 (변경|커밋)/i;

export const OVERVIEW =
  /\b(organi[sz]ed|organi[sz]ation|structured?|architecture|overview|layout|laid out|tour|onboard(ing)?|big picture|high[- ]level|entry ?points?|tech(nology)? stack|code ?map|(directory|file|folder|project) tree)\b|\bmap (of|out|the|this)\b|^map\b|\b(what|explain|describe|summari[sz]e|summary|understand|about|analy[sz]e|introduce|walk me through|show me)\b.{0,30}\b(this|the|my|our) (whole |entire |current )?(project|repo|repository|codebase|code base|folder|directory|workspace|app|application|program|package|code)\b(?! (called|named))|^(what|explain|describe|summari[sz]e) (is )?(this|it all)$|\bwhere (do|should|can) (i|we|one) (start|begin)\b|\bhow (do|can|should) (i|we|you) (build|run|start|test|install|compile|launch)\b|\b(which|what) (programming )?(languages?|dependencies)\b|как (устроен|организован|построен)|(структур|архитектур|обзор|устройств)|(опиши|объясни|расскажи).{0,20}(проект|репозитори)|что (это )?за проект|(wie ist|erkläre|beschreibe).{0,40}(projekt|repo|aufgebaut|organisiert|strukturiert)|(aufbau|überblick|architektur|struktur)|was ist das (hier )?für ein projekt|(estructura|arquitectura|resumen general|visión general)|(explica|describe|cómo está).{0,40}(proyecto|repositorio|organizado)|(aperçu|vue d'ensemble|architecture)|(explique|décris|comment est).{0,40}(projet|dépôt|organisé)|(项目|仓库|代码库).{0,8}(结构|架构|组织|概述|概览|是什么|做什么|介绍)|(结构|架构|概述|概览)|(介绍|解释|说明).{0,6}(项目|仓库|代码库)|(構成|構造|アーキテクチャ|概要)|(구조|아키텍처|개요)/i;

/** The requested part, within a question about the whole project. */
export const ENTRIES = /\bentry ?points?\b/;
export const COMMANDS = /\bhow (do|can|should) (i|we|you) (build|run|start|test|install|compile|launch)\b/;

/** A verb without an object. */
export const BARE =
  /^\s*(?:please\s+)?(?:summari[sz]e|summary|explain|describe|outline|review|analy[sz]e)(?:\s+(?:this|it|all|everything))?[\s.!?]*$/i;

/** Qualities that are not written in the code and cannot be searched for. */
export const JUDGEMENT =
  /\b(?:find|list|show|detect|identify|spot|check|search|look|are there|is there|any)\b.{0,30}?\b(?<what>(?:dead|unused|unreachable|duplicated?|redundant|obsolete) (?:code|functions?|methods?|imports?|files?|variables?|exports?|class(?:es)?|dependenc(?:y|ies))|(?:memory|resource) leaks?|race conditions?|code smells?|vulnerabilit(?:y|ies)|bottlenecks?|(?:security|performance) (?:holes?|issues?|problems?|flaws?)|bugs)\b/;

export const EXPLAIN =
  /\b(summari[sz]e|summary|explain|describe|what (is|are|does|do|'s)|what's|tell me about|walk me through|read|show( me)?|look at|outline|understand|how (does|do|is|are|did)|why|document|review|analy[sz]e|check|open|list|print|cat|view|see)\b|(объясни|опиши|расскажи|покажи|прочитай|что (такое|делает|в)|суммируй|резюме|как работает)|(erkläre|erklär|beschreibe|zeige?|was (macht|ist)|fasse|zusammenfass|wie funktioniert)|(explica|describe|resume|muestra|qué (es|hace)|cómo funciona)|(explique|décris|résume|montre|que fait|qu'est-ce que|comment fonctionne)|(解释|说明|总结|概括|介绍|查看|是什么|做什么|怎么工作|如何工作)|(説明|解説|要約|見せて|教えて|とは)|(설명|요약|보여|알려)/i;

export const FIND =
  /\b(where|find|locate|search|grep|look for|which (files?|functions?|class(es)?|modules?|places?|folders?|parts?|lines?|tests?)|who (calls|uses|imports)|(definitions?|usages?|uses|callers?|references?|occurrences?|implementations?|mentions?) (of|to|for)|(defined|declared|implemented|used|called|imported|handled|referenced))\b|(где|найди|найти|поиск|в каком файле|какой файл|кто вызывает)|\b(wo|finde|suche|welche datei|wer (ruft|nutzt|verwendet|benutzt|importiert))\b|(dónde|donde|encuentra|busca|qué archivo|quién (llama|usa|utiliza))|((^|\s)où(\s|$)|trouve|cherche|quel fichier|qui (appelle|utilise))|(在哪|哪里|哪儿|查找|搜索|找到|哪个文件)|(どこ|探し|検索|見つけ|どのファイル)|(어디|찾아|검색|어느 파일)/i;

export const USES =
  /\b(used|uses|usages?|callers?|called|calls|imported|imports|referenced|references|mentions?|occurrences?)\b|использу|вызыва|verwendet|benutzt|aufgerufen|\b(ruft|nutzt)\b|\busa(do|da|n)?\b|\bllama|utiliz|utilis|appel|使用|调用|使われ|呼び出|呼ばれ|사용|호출/i;

export const DEFINITION =
  /\b(defined|definition|declared|declaration|implemented|implementation|located|created)\b|определ|объявл|definiert|defini(do|da|ción)|définie?|定义|实现|定義|実装|정의|구현/i;

/** Beginnings of yes/no questions. */
export const WHETHER =
  /^(?:and |so )?(?:is there|are there|do we|do you|does (?:it|this|the|that)|do they|has (?:it|this|the)|have we|is any|are any|gibt es|hat (?:es|das|dieses)|hay|existe|tiene|y a-t-il|est-ce qu|il y a|есть ли|имеется ли|有没有|是否)|(ありますか|있나요|있습니까)$/;

/** At the start of a prompt: work on files, which rules cannot do. */
export const ACTION =
  /^(?:(?:please|kindly|now|then|and|also|ok|okay|so|hey|can you|could you|would you|will you|i want you to|i need you to|i need|i want|i would like you to|i'd like you to|let's|lets|help me( to)?|try to|you should|bitte|por favor|пожалуйста)[, ]+)*(?<verb>write|implement|fix|add|refactor|create|make|build|delete|remove|rename|update|upgrade|change|modify|edit|move|port|migrate|convert|rewrite|replace|install|deploy|run|execute|debug|optimi[sz]e|improve|translate|generate|solve|clean up|format|commit|push|merge|revert|set up|extend|support|enable|disable|commit|напиши|исправь|почини|добавь|создай|удали|переименуй|сделай|запусти|перепиши|schreibe?|behebe|repariere|füge|erstelle|lösche|implementiere|escribe|arregla|corrige|añade|crea|elimina|implementa|écris|corrige|répare|ajoute|crée|supprime|implémente|写|修复|修改|添加|创建|删除|实现|重构|schreib|refaktoriere|ändere|entferne|ersetze|baue|starte)(?![\p{L}\p{N}_])/iu;

/** Work verbs that other languages put at the end of a sentence. */
export const ACTION_AT_END =
  /^(?:bitte |kannst du |könntest du |können sie |könnten sie )+.*?(?<![\p{L}])(?<german>beheben|reparieren|schreiben|hinzufügen|erstellen|löschen|entfernen|umbenennen|ändern|implementieren|refaktorieren|ersetzen|verbessern|ausführen)$|(?<verb>(?:直し|修正し|追加し|書い|作っ|作成し|削除し|実装し|変更し|実行し|リファクタリングし)て|(?:고쳐|수정해|추가해|작성해|만들어|삭제해|구현해|변경해|실행해))/iu;

/** A word for the whole project: a question that names nothing else is about it. */
export const WHOLE =
  /(?<![\p{L}])(?:repositor(?:y|ium|io)|repo|projekts?|codebasis|quelltext|programm|proyecto|projet|dépôt)|(?:проект|репозитори|项目|仓库|代码库|リポジトリ|プロジェクト|コードベース|저장소|프로젝트|코드베이스)/iu;

/** Questions in other languages about running the tests or building the project. */
export const RUNS_TESTS =
  /(?:wie|cómo|comment|как|怎么|怎样|如何|どう|어떻게).*(?:tests?|pruebas|тест|测试)|(?:テスト).*(?:どう|方法)|(?:테스트).*(?:어떻게|방법)/iu;
export const BUILDS =
  /(?:wie|cómo|comment|как|怎么|怎样|如何).*(?:baue|build|kompilier|installier|start|construy|compil|instal|собра|собир|запус|构建|编译|安装|运行)|(?:ビルド|起動|インストール|コンパイル).*(?:どう|方法)|(?:どう).*(?:ビルド|起動|インストール|コンパイル)|(?:빌드|설치|실행).*(?:어떻게|방법)|어떻게.*(?:빌드|설치|실행)/iu;

/** Requests for an opinion about a text, which rules cannot give. */
export const OPINION =
  /(?<![\p{L}\p{N}_])(?<verb>review|critique|judge|assess|evaluate|approve|check|verify|audit|rate|suggest|recommend|find bugs|проверь|оцени|überprüfe|prüfe|bewerte|begutachte|revisa|evalúa|comprueba|vérifie|évalue|relis)(?![\p{L}\p{N}_])|(?:审查|评审|检查|レビュー|確認)/iu;

/** Anywhere in a prompt: words that ask for more than information. */
export const WORK =
  /\b(must|should|needs? to|needs? an?|make|ensure|fix|add|implement|refactor|rename|remove|delete|rewrite|replace|migrate)\b/i;

export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above actually after again all also am an and any anything are around as ask at be because been before being below between both but by
  call called calls can cannot code codebase contain contained contains could current declaration declare declared define defined defines definition definitions describe did do does doing
  done each either else every everything exactly explain explained file files find folder folders for from function get gets give given go going got had handle handled handles handling happen happens happening has have
  he help her here his how however i if implement implementation implemented implements in inside into is it its itself job just kind know let like line lines list locate located location look looking looks made
  main make makes many me mean means method might more most much must my name named need needs no not now occur occurrence occurrences of off on once one only or other our out over part perform performed place places please
  point project quick quickly really reference referenced references repo repository responsible same say search see set shall she should show so some somewhere source stuff such summarise summarize summary take tell than that the
  their them then there these they thing things this those through to too under understand up us use used user's uses using usage usages value very want was way we were what what's when where where's which while who whole whom whose why
  will with within without work working works would write written you your yours
  bug bugs issue issues problem problems logic feature features thing new support properly correctly
  variable class classes module modules package packages dir directory symbol identifier constant type types interface caller callers importer importers imported imports import
  could would bitte der die das und ist wo wie was wird el la los las es en de un una que le les des est une dans du et dónde donde está où find zeige mir datei welche archivo fichier quel quelle qué cómo comment where wurde werden sind se usa
  implementiert definiert verwendet benutzt definido definida usado usada définie défini utilisé utilisée finde suche trouve cherche busca encuentra`.split(
    /\s+/,
  ),
);

/** Words with slashes that are not paths. */
export const NOT_PATHS: ReadonlySet<string> = new Set(
  "and/or either/or i/o read/write input/output client/server yes/no he/she his/her on/off true/false tcp/ip ci/cd build/test start/stop request/response n/a w/o a/b".split(
    " ",
  ),
);

/** The names in code of a few everyday words in other languages. */
export const CONCEPTS: readonly (readonly [RegExp, string])[] = [
  [/ошибк|fehler|errores|erreurs?|错误/i, "error"],
  [/настройк|конфиг|konfiguration|einstellung|configuración|配置/i, "config"],
  [/разрешени|прав доступа|berechtigung|permisos|权限/i, "permission"],
  [/авторизац|аутентификац|вход|anmeldung|autenticación|authentification|登录|认证/i, "auth"],
  [/баз[аыу] данных|datenbank|base de datos|base de données|数据库/i, "database"],
  [/кэш|zwischenspeicher|caché|缓存/i, "cache"],
  [/журнал|логирован|protokollierung|registro|journalisation|日志/i, "log"],
  [/запрос|anfrage|solicitud|requête|请求/i, "request"],
  [/пользовател|benutzer|usuario|utilisateur|用户/i, "user"],
  [/повтор|wiederhol|reintent|重试/i, "retry"],
  [/тест|prueba|测试/i, "test"],
  [/сесси|sitzung|sesión|会话/i, "session"],
];
