package conn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"carronade/protocol"
)

// Hosts parses the hosts of a target, host,host:port,... and adds the default port to
// those without one.
func Hosts(list, port string) ([]string, error) {
	var hosts []string
	for h := range strings.SplitSeq(list, ",") {
		addr, err := Host(strings.TrimSpace(h), port)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", h, err)
		}
		hosts = append(hosts, addr)
	}
	return hosts, nil
}

// Host completes an address with a port. An IPv6 address without a port needs no
// brackets.
func Host(text, port string) (string, error) {
	if text == "" {
		return "", errors.New("no address")
	}
	host, p, err := net.SplitHostPort(text)
	if err != nil {
		// A name, or an IPv6 address, without a port.
		host, p = strings.Trim(text, "[]"), port
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", err
		}
	}
	if host == "" {
		return "", errors.New("no host name")
	}
	if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("invalid port %s: want 1 to 65535", p)
	}
	return net.JoinHostPort(host, p), nil
}

// ListenAddress splits an address to listen on, HOST:PORT, or PORT for this machine alone. The port may
// be 0. The error does not repeat the text.
func ListenAddress(text string) (host, port string, err error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err = net.SplitHostPort(text)
	if bad := (*net.AddrError)(nil); errors.As(err, &bad) {
		return "", "", errors.New(bad.Err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%q is not a port", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// CheckURL refuses URLs that contain what must not be in the URL of a target, or of
// another service. The URL becomes part of the report, and so would a password in it;
// the error therefore repeats no part of it. The hints say how to log in instead, and
// where settings belong.
func CheckURL(u *url.URL, doing, login, settings string) error {
	switch {
	case u.User != nil:
		return &protocol.Error{Doing: doing, Err: errors.New("a URL must not contain a user or a password"), Hint: login}
	case u.RawQuery != "" || u.Fragment != "":
		return &protocol.Error{Doing: doing, Err: errors.New("the URL must not have a query (?) or a fragment (#)"), Hint: settings}
	}
	return nil
}
