package workload

import "carronade/protocol"

const groupLive = "metrics while it runs"

// liveTable has the settings about exporting metrics, the same for every kind.
func liveTable() []Setting {
	opt := func(name, word, help string) Setting {
		return Setting{Option: protocol.Option{Name: name, Word: word, Group: groupLive, Help: help}, FlagOnly: true}
	}
	header := opt("otlp-header", "K=REF", "a header for it; REF is env:NAME or file:PATH (repeatable)")
	header.Type, header.check, header.Show = protocol.List, checkHeader, showHeader
	linger := opt("metrics-linger", "", "keep serving /metrics after the end for this time, for a last scrape; Ctrl-C ends it")
	linger.Type = protocol.Duration
	web := opt("web", "ADDR", "show the run on a page, at a free port of this machine or at HOST:PORT")
	web.Bare = "127.0.0.1:0"
	webLinger := opt("web-linger", "", "keep serving the page after the end for this time; Ctrl-C ends it")
	webLinger.Type = protocol.Duration
	return []Setting{
		web,
		webLinger,
		opt("metrics-addr", "ADDR", "serve /metrics for Prometheus at HOST:PORT; with only a PORT, on loopback"),
		linger,
		opt("graphite", "HOST:PORT", "send metrics of each interval to Graphite's plaintext port"),
		opt("graphite-prefix", "PREFIX", "prefix of their names (default: this host's name)"),
		opt("otlp", "URL", "send metrics of each interval and the final values to an OTLP/HTTP collector"),
		header,
	}
}
