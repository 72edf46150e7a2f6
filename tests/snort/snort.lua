-- SPDX-License-Identifier: BSD-3-Clause
-- Copyright (c) 2026 The libnfmeta authors
--
-- Snort 3 in the tests: streams, HTTP, a few rules. What is in capitals the test puts in front:
-- PORT_80, an action of the binder; EOF_PLUGIN; NO_RULES.

stream = { max_flows = 65536 }
stream_ip = { }
stream_icmp = { }
stream_tcp = { }
stream_udp = { }
http_inspect = { }
wizard =
{
    spells =
    {
        {
            service = 'http', proto = 'tcp',
            to_server = { 'GET', 'HEAD', 'POST' }, to_client = { 'HTTP/' }
        }
    }
}
if PORT_80 then
    binder =
    {
        { when = { ports = '80', proto = 'tcp' }, use = { action = PORT_80 } },
        { use = { type = 'wizard' } }
    }
else
    binder = { { use = { type = 'wizard' } } }
end
if EOF_PLUGIN then
    nfmeta_eof = { }
end
if NEAR_PLUGIN then
    nfmeta_near = { }
end

if not NO_RULES then ips =
{
    rules = [[
alert tcp any any -> any any ( msg:"connection"; flags:S; sid:1000001; )
alert udp any any -> any any ( msg:"datagram"; dsize:>0; sid:1000002; )
alert icmp any any -> any any ( msg:"ping"; itype:8; sid:1000003; )
alert tcp any any -> any any ( msg:"to server"; flow:established,to_server; dsize:>0; sid:1000004; )
alert tcp any any -> any any ( msg:"to client"; flow:established,to_client; dsize:>0; sid:1000005; )
alert ip any any -> any any ( msg:"fragment"; fragbits:M; sid:1000006; )
alert http any any -> any any ( msg:"http"; sid:1000007; )
reject tcp any any -> any 81 ( msg:"rejected"; flags:S; sid:1000008; )
]]
}
end
alert_csv =
{
    file = true,
    fields = 'proto src_addr src_port dst_addr dst_port sid pkt_len'
}
