package conn

import "carronade/protocol"

// A ConnectTimeout describes a kind's option connect-timeout. The zero value means that
// the kind has no such option.
type ConnectTimeout struct {
	Default string
	// Independent says whether reports are grouped by it. It affects what is measured
	// wherever connections are made anew during a run. But every independent setting,
	// even with its default, is part of the key by which stored reports are found. So a
	// kind whose earlier reports were stored without it must stay without it: setting
	// it would separate each new report from all earlier ones, even for users who never
	// set the flag.
	Independent bool
}

// Options returns the rows of a kind's table for how its connections are made and
// how long they wait, under a heading of help.
//
// All but connect-timeout are independent for every kind: even if connections are
// long-lived, those that are made anew during a run affect what is measured.
func Options(group string, connect ConnectTimeout) []protocol.Option {
	rows := []protocol.Option{
		{Name: "request-timeout", Type: protocol.Duration, Default: "30s", Group: group, Independent: true, Help: "how long an answer may take"},
	}
	if connect.Default != "" {
		rows = append(rows, protocol.Option{
			Name: "connect-timeout", Type: protocol.Duration, Default: connect.Default, Group: group, Independent: connect.Independent,
			Help: "how long connecting may take, TLS included",
		})
	}
	return append(rows,
		protocol.Option{Name: "send-buffer", Type: protocol.Size, Group: group, Independent: true, Help: "the connections' send buffer (SO_SNDBUF)"},
		protocol.Option{Name: "recv-buffer", Type: protocol.Size, Group: group, Independent: true, Help: "the connections' receive buffer (SO_RCVBUF)"},
	)
}

// TLSOptions returns the rows of a kind's table for how its connections are secured, under
// a heading of help. whose names the server: "the broker's".
func TLSOptions(group, whose string) []protocol.Option {
	return []protocol.Option{
		{Name: "tls-ca", Word: "FILE", Group: group, Help: "PEM file of the certificate authorities to trust; default: the system's"},
		{Name: "tls-cert", Word: "FILE", Group: group, Help: "PEM file of the client's certificate"},
		{Name: "tls-key", Word: "FILE", Group: group, Help: "PEM file of its private key"},
		{Name: "tls-server-name", Word: "NAME", Group: group, Help: "name to expect in " + whose + " certificate, instead of its address"},
		{Name: "tls-insecure-skip-verify", Type: protocol.Bool, Default: "false", Group: group, Help: "accept any certificate; the report says so"},
	}
}

// UsesTLS reports whether one of those options has a value that is useful only with
// TLS.
func UsesTLS(v protocol.Values) bool {
	return v.Has("tls-ca") || v.Has("tls-cert") || v.Has("tls-key") || v.Has("tls-server-name") || v.Bool("tls-insecure-skip-verify")
}
