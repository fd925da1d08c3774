import { expect, test } from "vitest";
import { readTask, type Task } from "./intent.ts";

/** The task in one line: kind, then its subject. */
function short(task: Task): string {
  switch (task.kind) {
    case "find":
      return `find ${task.want} ${task.terms.map((term) => term.text).join(" ")}`.trim();
    case "explain":
      return `explain ${task.path}${task.line === undefined ? "" : `:${task.line}`}`;
    case "beyond":
      return `beyond ${task.verb} ${[task.path ?? [], task.terms.map((term) => term.text)].flat().join(" ")}`.trim();
    case "data":
      return `data ${task.data.split("\n").length}`;
    case "overview":
      return task.focus === undefined ? task.kind : `${task.kind} ${task.focus}`;
    default:
      return task.kind;
  }
}

const prompts: readonly (readonly [prompt: string, task: string])[] = [
  ["Explain how this repository is organised", "overview"],
  ["explain how this repo is organized.", "overview"],
  ["What is this project?", "overview"],
  ["what does this project do", "overview"],
  ["Give me an overview", "overview"],
  ["Give me a map of the codebase", "overview"],
  ["describe the architecture", "overview"],
  ["Summarise this repository", "overview"],
  ["how do I build and test this?", "overview commands"],
  ["where should I start reading?", "overview"],
  ["what are the entry points?", "overview entries"],
  ["Which languages is it written in?", "overview"],
  ["Write a summary of this project", "overview"],
  ["Как устроен этот проект?", "overview"],
  ["Wie ist dieses Projekt aufgebaut?", "overview"],
  ["¿Cómo está organizado este repositorio?", "overview"],
  ["Explique comment est organisé ce dépôt", "overview"],
  ["这个项目的结构是什么?", "overview"],
  ["Summarise", "overview"],
  ["Explain.", "overview"],
  ["how do I run the tests?", "overview tests"],
  ["List the entry points", "overview entries"],
  ["Where is main?", "find any main"],
  ["Where is main defined?", "find definition main"],
  ["where is the function value used?", "find uses value"],
  ["who calls main?", "find uses main"],
  ["Where is größe?", "find any größe"],
  ["explain größe", "find any größe"],
  ["Find dead code", "beyond find dead code"],
  ["are there any memory leaks?", "beyond find memory leaks"],
  ["Where is runLoop defined?", "find definition runLoop"],
  ["where is `runLoop`", "find any runLoop"],
  ["Where is the Session class?", "find any Session"],
  ["find parse_config", "find any parse_config"],
  ["Which file defines MAX_RETRIES?", "find any MAX_RETRIES"],
  ["who calls boundOutput()?", "find uses boundOutput"],
  ["where is readLines used?", "find uses readLines"],
  ["usages of ToolContext", "find uses ToolContext"],
  ["where are permissions checked?", "find any permissions checked"],
  ["how are retries handled?", "find any retries"],
  ["how does the retry policy work?", "find any retry policy"],
  ['where does the text "No matches found" come from?', "find any No matches found"],
  ["what is ModelError?", "find any ModelError"],
  ["explain runLoop", "find any runLoop"],
  ["runLoop", "find any runLoop"],
  ["Где определён runLoop?", "find definition runLoop"],
  ["Где обрабатываются ошибки?", "find any error"],
  ["Wo wird runLoop definiert?", "find definition runLoop"],
  ["¿Dónde está definido runLoop?", "find definition runLoop"],
  ["Où est définie runLoop ?", "find definition runLoop"],
  ["runLoop 在哪里定义?", "find definition runLoop"],
  ["runLoop在哪里定义？", "find definition runLoop"],
  ["Wo ist die Funktion compose definiert?", "find definition compose"],
  ["Wo ist die Konfiguration?", "find any config"],
  ["Wer ruft runLoop auf?", "find uses runLoop"],
  ["¿Quién llama a runLoop?", "find uses runLoop"],
  ["Qui appelle runLoop ?", "find uses runLoop"],
  ["runLoop はどこで定義されていますか？", "find definition runLoop"],
  ["runLoopはどこで使われていますか？", "find uses runLoop"],
  ["runLoop은 어디에 정의되어 있나요?", "find definition runLoop"],
  ["Gibt es hier einen Rate Limiter?", "find any rate limiter"],
  ["Was macht dieses Repository?", "overview"],
  ["Was tut dieses Programm?", "overview"],
  ["¿Qué hace este proyecto?", "overview"],
  ["Que fait ce projet ?", "overview"],
  ["Что делает этот репозиторий?", "overview"],
  ["このリポジトリは何をしますか？", "overview"],
  ["이 저장소는 무엇을 하나요?", "overview"],
  ["Wie führe ich die Tests aus?", "overview tests"],
  ["¿Cómo ejecuto las pruebas?", "overview tests"],
  ["Как запустить тесты?", "overview tests"],
  ["テストはどうやって実行しますか？", "overview tests"],
  ["테스트는 어떻게 실행하나요?", "overview tests"],
  ["Wie baue ich das?", "overview commands"],
  ["src/loop.ts を説明して", "explain src/loop.ts"],
  ["explain src/loop/loop.ts", "explain src/loop/loop.ts"],
  ["Summarise `src/loop/loop.ts`.", "explain src/loop/loop.ts"],
  ["what does package.json say?", "explain package.json"],
  ["what is in src/model/?", "explain src/model/"],
  ["explain the tools folder", "explain tools"],
  ["summarize the folder docs", "explain docs"],
  ["what happens at src/app.py:42?", "explain src/app.py:42"],
  ["README", "explain README"],
  ["how is src/model organised?", "explain src/model"],
  ["Объясни файл src/index.ts", "explain src/index.ts"],
  ["解释 src/index.ts", "explain src/index.ts"],
  ["What changed?", "changes"],
  ["what's new", "changes"],
  ["show me the recent commits", "changes"],
  ["git status", "changes"],
  ["what did I change?", "changes"],
  ["Что изменилось?", "changes"],
  ["Was hat sich geändert?", "changes"],
  ["¿Qué cambió?", "changes"],
  ["Qu'est-ce qui a changé ?", "changes"],
  ["最近改了什么?", "changes"],
  ["hi", "greeting"],
  ["Hello there!", "greeting"],
  ["thanks!", "thanks"],
  ["what can you do?", "help"],
  ["help", "help"],
  ["", "help"],
  ["кто ты?", "help"],
  ["あなたは何ができますか？", "help"],
  ["Hallo, wie geht's?", "greeting"],
  ["バグを直してください", "beyond 直して"],
  ["버그를 고쳐 주세요", "beyond 고쳐"],
  ["Kannst du den Fehler in src/a.ts beheben?", "beyond beheben src/a.ts error"],
  ["Schreibe Tests", "beyond schreibe tests"],
  ["fix the bug in src/a.ts", "beyond fix src/a.ts"],
  ["Please add a --verbose flag to the command line", "beyond add verbose flag command"],
  ["can you write tests for parseConfig", "beyond write parseConfig"],
  ["Напиши функцию сортировки", "beyond напиши"],
  ["I feel a little tired today", "beyond chat feel little tired today"],
  ["read/write and/or client/server", "find any read client server"],
  ["what failed?\n\n```\nERROR a\nINFO b\n```", "data 2"],
  ["why?\n\n<piped_input>\na,b\n1,2\n</piped_input>", "data 2"],
  ["look at this\n2024-01-01 INFO a\n2024-01-01 ERROR b\n2024-01-01 INFO c\n2024-01-01 INFO d", "data 4"],
  ["Please create a detailed summary of the conversation so far.", "recap"],
];

test.each(prompts)("the understudy understands %j as: %s", (prompt, expected) => {
  expect(short(readTask([prompt]))).toBe(expected);
});

test("a follow-up prompt takes its subject from the prompt before", () => {
  expect(short(readTask(["Where is runLoop defined?", "and where is it used?"]))).toBe("find uses runLoop");
  expect(short(readTask(["explain src/loop/loop.ts", "who uses it?"]))).toBe("find uses loop");
  expect(short(readTask(["explain src/loop/loop.ts", "thanks", "tell me more about that"]))).toBe(
    "explain src/loop/loop.ts",
  );
});

test("the last prompt alone is the understudy's task", () => {
  expect(short(readTask(["where is runLoop?", "What changed?"]))).toBe("changes");
});
