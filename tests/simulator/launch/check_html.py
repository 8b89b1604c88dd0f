#!/usr/bin/env python3
# Checks that report pages are well-formed and stand alone: every tag closed in order, ids unique, links inside the page, nothing fetched.
#   check_html.py PAGE...        prints one line for each fault; exit 1 when there is one
#   check_html.py --self-test    plants each fault in a page and checks that it is found
# SPDX-License-Identifier: Apache-2.0
import html.parser
import pathlib
import sys

VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.faults = []
        self.open = []
        self.ids = []
        self.links = []

    def fault(self, text):
        self.faults.append(f"line {self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "link", "img", "iframe"):
            self.fault(f"<{tag}> has no place in a report")
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.fault(f"id {value} twice")
                self.ids.append(value)
            if name in ("href", "src"):
                self.links.append(value)
            if name.startswith("on"):
                self.fault(f"attribute {name}")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.fault(f"</{tag}> closes {self.open[-1] if self.open else 'nothing'}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if (self.open[-1:] != ["style"]) and ("<" in data or ">" in data):
            self.fault("a bare angle bracket")

    def finish(self):
        self.close()
        for tag in self.open:
            self.fault(f"<{tag}> is not closed")
        for link in self.links:
            if not link.startswith("#") or link[1:] not in self.ids:
                self.fault(f"link {link} leads nowhere in this page")
        return self.faults


def faults_of(text):
    page = Page()
    page.feed(text)
    faults = page.finish()
    return faults if text.startswith("<!DOCTYPE html>") else faults + ["no <!DOCTYPE html>"]


def self_test():
    head = "<!DOCTYPE html><html><body>"
    planted = ["<p><b></p></b>", "<p>", "<p id=\"a\"></p><p id=\"a\"></p>", "<a href=\"#x\"></a>", "<a href=\"http://x\"></a>",
               "<script></script>", "<p>a > b</p>", "<p onclick=\"x\"></p>"]
    missed = [text for text in planted if not faults_of(f"{head}{text}</body></html>")]
    if not faults_of("<html></html>"):
        missed.append("no doctype")
    if faults_of(head + "<p id=\"a\">x &lt; y<br></p><a href=\"#a\">a</a></body></html>"):
        missed.append("a clean page is refused")
    for text in missed:
        print(f"missed: {text}")
    return 1 if missed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    num_faults = 0
    for name in sys.argv[1:]:
        for fault in faults_of(pathlib.Path(name).read_text(encoding="utf-8")):
            print(f"{name}: {fault}")
            num_faults += 1
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
