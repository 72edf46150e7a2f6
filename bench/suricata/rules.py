#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""Makes a rule set for Suricata: made-up names in the usual mixture of keywords.

usage: rules.py COUNT FILE

The first rule finds the canary of gen.py's traces. Of the others hardly any matches; one
in fifty has words of the traces as its pattern, so that it is looked at now and then.
"""
import random
import sys

from gen import CANARY, STEMS

VERBS = "gate drop load panel check stage beat task conf upd reg bot knock sync".split()
TOPS = ("top", "xyz", "ru", "info", "biz", "club", "cc", "pw", "online", "site", "com", "net")
CLASSES = ("trojan-activity", "web-application-attack", "attempted-admin", "policy-violation", "misc-activity")
OUT = "$HOME_NET any -> $EXTERNAL_NET"
BACK = "$EXTERNAL_NET {} -> $HOME_NET any"
IN = "$EXTERNAL_NET any -> $HTTP_SERVERS any"


class Maker:
    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.bits = 0

    def word(self, low=4, high=9):
        """Something that can be said but is no word."""
        r = self.rnd
        out = "".join(r.choice("bcdfghjklmnprstvwz") + r.choice("aeiou") for _ in range(high // 2 + 1))
        return out[: r.randint(low, high)]

    def name(self):
        r = self.rnd
        if r.random() < 0.02:
            return r.choice(STEMS) + r.choice(STEMS)
        return self.word() + r.choice(("", "-" + self.word(3, 5), str(r.randrange(1000))))

    def domain(self):
        return f"{self.name()}.{self.rnd.choice(TOPS)}"

    def page(self):
        r = self.rnd
        out = "/" + self.name() + r.choice((".php", ".asp", ".cgi", "/" + r.choice(VERBS) + ".php", "/", ".jsp"))
        return out + r.choice(("", f"?{self.word(2, 4)}=", "?id="))

    def binary(self, n):
        return "|" + " ".join(f"{self.rnd.randrange(256):02x}" for _ in range(n)) + "|"

    # ---- kinds of rules: header, what it looks for, options ------------------------------

    def http_uri(self):
        r = self.rnd
        options = 'flow:established,to_server; http.method; content:"' + r.choice(("GET", "GET", "POST")) + '"; '
        page = self.page()
        options += f'http.uri; content:"{page}"; fast_pattern; '
        if r.random() < 0.4:
            options += r.choice(("startswith; ", "nocase; ", f"depth:{len(page) + r.randrange(40)}; "))
        if r.random() < 0.3:
            options += f'pcre:"/[?&]{self.word(2, 4)}=[a-f0-9]{{{r.randint(8, 32)}}}(?:&|$)/"; '
        if r.random() < 0.3:
            options += f'http.user_agent; content:"{self.word()}/{r.randint(1, 9)}."; '
        if r.random() < 0.15:
            options += 'http.header_names; content:!"Referer"; content:!"Accept-Language"; '
        return "http", OUT + " any", options

    def http_host(self):
        options = f'flow:established,to_server; http.host; content:"{self.domain()}"; '
        options += self.rnd.choice(("endswith; ", "bsize:>8; ", "fast_pattern; "))
        if self.rnd.random() < 0.4:
            options += f'http.uri; content:"/{self.rnd.choice(VERBS)}"; startswith; '
        return "http", OUT + " any", options

    def http_agent(self):
        options = f'flow:established,to_server; http.user_agent; content:"{self.name()}'
        options += self.rnd.choice(('"; startswith; ', ' client"; nocase; ', '"; bsize:<40; '))
        if self.rnd.random() < 0.3:
            options += f'http.cookie; content:"{self.word()}="; '
        return "http", OUT + " any", options

    def http_body(self):
        word = self.word(3, 6)
        options = 'flow:established,to_server; http.method; content:"POST"; http.request_body; '
        options += f'content:"{word}={self.word()}&"; fast_pattern; '
        if self.rnd.random() < 0.5:
            options += f'pcre:"/^{word}=[A-Za-z0-9+\\/]{{16,}}={{0,2}}(?:&|$)/"; '
        return "http", OUT + " any", options

    def http_attack(self):
        options = f'flow:established,to_server; http.uri; content:"/{self.name()}/"; nocase; '
        options += self.rnd.choice((
            'content:"../"; distance:0; ',
            'pcre:"/(?:union.{1,30}select|select.{1,50}from)/i"; ',
            'content:"cmd="; nocase; distance:0; pcre:"/cmd=[^&]*(?:\\x3b|\\x7c|%0a)/i"; ',
            f'http.header; content:"X-{self.word().title()}|3a 20|"; ',
        ))
        return "http", IN, options

    def http_answer(self):
        options = 'flow:established,to_client; http.stat_code; content:"200"; file.data; '
        options += f'content:"{self.name()}{self.rnd.choice(("(", "=", ".exec"))}"; fast_pattern; '
        options += f'content:"{self.word(3, 5)}"; distance:0; within:{self.rnd.randint(60, 300)}; '
        if self.rnd.random() < 0.4:
            options += f'pcre:"/{self.word(3, 4)}\\s*=\\s*[\\x22\\x27][^\\x22\\x27]{{50,}}/R"; '
        return "http", BACK.format("any"), options

    def tls_sni(self):
        options = f'flow:established,to_server; tls.sni; content:"{self.domain()}"; '
        return "tls", OUT + " any", options + self.rnd.choice(("endswith; ", "bsize:>6; ", "fast_pattern; nocase; "))

    def tls_cert(self):
        options = f'flow:established,to_client; tls.cert_subject; content:"CN={self.domain()}"; '
        if self.rnd.random() < 0.4:
            options += f'tls.cert_issuer; content:"O={self.word().title()}"; '
        return "tls", BACK.format("any"), options

    def dns_query(self):
        options = f'dns.query; content:"{self.domain()}"; nocase; '
        long_label = f'pcre:"/^[a-z0-9]{{{self.rnd.randint(8, 24)},}}\\./"; '
        options += self.rnd.choice(("endswith; ", long_label, "bsize:>10; "))
        return "dns", "$HOME_NET any -> any any", options

    def tcp_binary(self):
        r = self.rnd
        port = r.choice(("any", "any", "445", "1433", "[1024:]", "8080", "!80"))
        options = f'flow:established,to_server; content:"{self.binary(r.randint(4, 8))}"; '
        options += r.choice((f"depth:{r.randint(8, 32)}; ", f"offset:{r.randint(2, 12)}; ", ""))
        options += f'content:"{self.word(3, 8)}"; distance:{r.randrange(16)}; within:{r.randint(32, 96)}; '
        if r.random() < 0.3:
            options += f"byte_test:2,>,{r.randint(100, 900)},{r.randint(0, 4)},relative; "
        if r.random() < 0.3:
            options += f"dsize:>{r.randint(20, 200)}; "
        return "tcp", f"{OUT} {port}", options

    def tcp_text(self):
        r = self.rnd
        port = r.choice(("any", "[6660:7400]", "21", "25", "any"))
        options = f'flow:established; content:"{self.name()} {self.word(3, 6)}|3a|"; '
        if r.random() < 0.4:
            options += f'pcre:"/^{self.word(3, 5)}[ \\t]+[^\\r\\n]{{40,}}/m"; '
        return "tcp", f"{OUT} {port}", options

    def udp(self):
        options = f'dsize:>{self.rnd.randint(8, 64)}; content:"{self.binary(self.rnd.randint(4, 6))}"; depth:16; '
        return "udp", f"{OUT} {self.rnd.choice(('any', '123', '5060', '[1024:]'))}", options

    def mail(self):
        options = f'flow:established,to_server; content:"Subject|3a 20|{self.word().title()} {self.word()}"; '
        return "smtp", OUT + " any", options

    def two_steps(self):
        """Sets a bit of the flow, or asks for it."""
        bit, first = f"nfm.{self.bits // 2}", self.bits % 2 == 0
        self.bits += 1
        if first:
            options = f'flow:established,to_server; http.uri; content:"{self.page()}"; '
            options += f"flowbits:set,{bit}; flowbits:noalert; "
            return "http", OUT + " any", options
        options = f'flow:established,to_client; flowbits:isset,{bit}; file.data; content:"{self.name()}"; '
        return "http", BACK.format("any"), options

    def rule(self, sid):
        kinds = (
            (self.http_uri, 20), (self.http_host, 8), (self.http_agent, 6), (self.http_body, 5), (self.http_attack, 9),
            (self.http_answer, 8), (self.tls_sni, 10), (self.tls_cert, 4), (self.dns_query, 10), (self.tcp_binary, 9),
            (self.tcp_text, 3), (self.udp, 3), (self.mail, 2), (self.two_steps, 3),
        )
        (kind,) = self.rnd.choices([k for k, _ in kinds], [w for _, w in kinds])
        proto, ends, options = kind()
        if self.rnd.random() < 0.05:
            options += "threshold:type limit, track by_src, count 1, seconds 60; "
        what = f"{kind.__name__.replace('_', ' ')} {self.word()} {sid}"
        return (f'alert {proto} {ends} (msg:"bench: {what}"; {options}'
                f"classtype:{self.rnd.choice(CLASSES)}; sid:{sid}; rev:{self.rnd.randint(1, 9)};)")


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit(__doc__)
    maker = Maker(1)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write(f'alert http any any -> any any (msg:"bench: canary"; flow:established,to_server; http.uri; '
                  f'content:"{CANARY}"; bsize:{len(CANARY)}; classtype:misc-activity; sid:1; rev:1;)\n')
        for n in range(1, int(sys.argv[1])):
            out.write(maker.rule(1000000 + n) + "\n")


if __name__ == "__main__":
    main()
