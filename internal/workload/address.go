package workload

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"carronade/protocol"
)

// ParseTarget parses a target's URL and finds the kind of its scheme. It may have several
// hosts, SCHEME://a:9092,b:9092/PATH, which remain as written in URL.Host (Hosts splits them).
func ParseTarget(kinds []protocol.Kind, text string) (protocol.Kind, *url.URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		e := &Error{Where: "target", Err: fmt.Errorf("%q is not a URL: it has no scheme", hideUser(text)), Hint: "targets look like " + examples(kinds)}
		if looksLikeHost(text) && len(kinds) > 0 {
			e.Hint = fmt.Sprintf("did you mean %s://%s?", kinds[0].Schemes()[0], text)
		}
		return nil, nil, e
	}
	kind := kindOf(kinds, scheme)
	if kind == nil {
		return nil, nil, unknownScheme(kinds, scheme, hideUser(rest))
	}

	// net/url allows only one port, at the end, so the hosts are removed before parsing.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	hosts, tail := rest[:end], rest[end:]
	if strings.Contains(hosts, "@") {
		return nil, nil, &Error{
			Where: "target", Err: errors.New("a URL must not contain a user or a password: reports and the process list would show it"),
			Hint: "use the settings for them; secrets as env:NAME or file:PATH",
		}
	}
	u, err := url.Parse(scheme + "://host" + tail)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, nil, &Error{Where: "target", Err: fmt.Errorf("%q is not a URL: %w", text, err), Hint: "targets look like " + examples(kinds)}
	}
	u.Host = hosts
	for _, h := range Hosts(u) {
		if err := checkHost(h); err != nil {
			return nil, nil, &Error{Where: "target", Err: fmt.Errorf("%q: %w", text, err), Hint: "targets look like " + examples(kinds)}
		}
	}
	return kind, u, nil
}

func kindOf(kinds []protocol.Kind, scheme string) protocol.Kind {
	for _, k := range kinds {
		if slices.Contains(k.Schemes(), scheme) {
			return k
		}
	}
	return nil
}

// unknownScheme returns the error of an unknown scheme. It suggests the nearest scheme, or one
// that uses the typed scheme as its transport, like X+http, or one whose default port was
// given.
func unknownScheme(kinds []protocol.Kind, scheme, rest string) error {
	var known, over, ported []string
	var likely []string // of over, or else of all: those with the given port
	host, _, _ := strings.Cut(strings.SplitN(rest, "/", 2)[0], ",")
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		port = host[i+1:]
	}
	for _, k := range kinds {
		for _, s := range k.Schemes() {
			known = append(known, s)
			goesBy := strings.HasSuffix(s, "+"+scheme)
			if goesBy {
				over = append(over, s)
			}
			if port != "" && protocol.DefaultPort(k, s) == port {
				if ported = append(ported, s); goesBy {
					likely = append(likely, s)
				}
			}
		}
	}
	e := &Error{Where: "target", Err: fmt.Errorf("unknown scheme %q; the schemes are %s", scheme, strings.Join(known, ", "))}
	near := Nearest(scheme, known)
	switch {
	case near != "":
		likely = []string{near}
	case len(likely) > 0:
	case len(over) > 0:
		likely = over
	default:
		likely = ported[:min(1, len(ported))] // other transports with the same port are rarer
	}
	if len(likely) == 0 {
		e.Hint = "targets look like " + examples(kinds)
		return e
	}
	for i, s := range likely {
		likely[i] = s + "://" + rest
	}
	e.Hint = fmt.Sprintf("did you mean %s?", strings.Join(likely, " or "))
	return e
}

// Hosts are the hosts of a target's URL, with their ports if given.
func Hosts(u *url.URL) []string {
	if u.Host == "" {
		return nil
	}
	return strings.Split(u.Host, ",")
}

func checkHost(h string) error {
	host := h
	if i := strings.LastIndexByte(h, ':'); i >= 0 && !strings.HasSuffix(h, "]") {
		host = h[:i]
		port := h[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q has no valid port: it is a number from 1 to 65535", h)
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if !closed || net.ParseIP(inner) == nil {
			return fmt.Errorf("%q is not an IPv6 address", host)
		}
		return nil
	}
	if host == "" {
		return errors.New("a host is empty")
	}
	if strings.ContainsAny(host, ": \t[]\\\"'%") {
		return fmt.Errorf("%q is not a host name", host)
	}
	return nil
}

// looksLikeHost recognises host:port[/topic], typed without a scheme.
func looksLikeHost(text string) bool {
	hosts, _, _ := strings.Cut(text, "/")
	if hosts == "" || strings.Contains(hosts, "@") {
		return false
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if checkHost(h) != nil {
			return false
		}
	}
	return strings.ContainsAny(hosts, ":.") || hosts == "localhost"
}

// hideUser removes a possible user and password.
func hideUser(rest string) string {
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		return rest[i+1:]
	}
	return rest
}

// examples lists one URL per kind, for hints.
func examples(kinds []protocol.Kind) string {
	var list []string
	for _, k := range kinds {
		example := k.Schemes()[0] + "://"
		if port := protocol.DefaultPort(k, k.Schemes()[0]); port != "" {
			example += "127.0.0.1:" + port
		}
		list = append(list, example)
	}
	return strings.Join(list, " or ")
}
