package workload

import "carronade/target"

const groupLive = "telling others while it runs"

// liveTable is the part of the table about telling others of a run that goes
// on. It is the same for every kind of target.
func liveTable() []Setting {
	opt := func(name, word, help string) Setting {
		return Setting{Option: target.Option{Name: name, Word: word, Group: groupLive, Help: help}, FlagOnly: true}
	}
	header := opt("otlp-header", "K=REF", "a header for it; REF is env:NAME or file:PATH (repeatable)")
	header.Type, header.check, header.Show = target.List, checkHeader, showHeader
	return []Setting{
		opt("metrics-addr", "ADDR", "serve /metrics for Prometheus at HOST:PORT; a PORT alone is this machine's only"),
		opt("graphite", "HOST:PORT", "figures of each interval to Graphite's plaintext port"),
		opt("graphite-prefix", "PREFIX", "begins their names (default: this host's name)"),
		opt("otlp", "URL", "figures of each interval to an OTLP/HTTP collector"),
		header,
	}
}
