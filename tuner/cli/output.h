// Standard output and error of the program. A fault of either never ends the work: what cannot be written is dropped, and the first
// fault of standard output is reported when the command ends. Standard error that is gone is gone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kw::tuner {

/// Before anything is printed. Also makes sure that no file is ever opened as descriptor 0, 1 or 2.
void guard_output();

/// After the last print: `code`, or 3 with a message when standard output took a fault. A broken pipe ends the program as a shell
/// expects: silently, by SIGPIPE.
int finish_output(int code);

}  // namespace kw::tuner
