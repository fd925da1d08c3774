// The licence texts of packages whose code is bundled into dist and that users do not install themselves.
const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** The package carries no licence file; its package.json says MIT. Parts of its input buffer come from OpenTUI. */
const PI_TUI = `@earendil-works/pi-tui (MIT License)

Copyright (c) 2025 Mario Zechner
Copyright (c) 2025 opentui (stdin buffer)

${MIT}`;

const WIDTH = `get-east-asian-width (MIT License)

Copyright (c) Sindre Sorhus <sindresorhus@gmail.com> (https://sindresorhus.com)

${MIT}`;

/** The packages of the dashboard's page. @speed-highlight/core is in the public domain (CC0 1.0). */
const PAGE = `preact (MIT License)

Copyright (c) 2015-present Jason Miller

@preact/signals and @preact/signals-core (MIT License)

Copyright (c) 2022-present Preact Team

marked (MIT License)

Copyright (c) 2018+, MarkedJS (https://github.com/markedjs/)
Copyright (c) 2011-2018, Christopher Jeffrey (https://github.com/chjj/)

uplot (MIT License)

Copyright (c) 2022 Leon Sorokin

${MIT}`;

export const licenceTexts = `Code of these packages is part of the files in dist.\n\n${[PI_TUI, WIDTH, PAGE].join("\n\n---\n\n")}\n`;
