package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"carronade/internal/advice"
	"carronade/internal/host"
)

// A NATS is an existing NATS server that is used instead of a Server of this package. Who may do
// what is then up to its administrator, who gives each agent A the permissions
//
//	publish   f.A.up
//	subscribe f.A.down
//
// and the operator
//
//	publish   f.*.down
//	subscribe f.*.up
//
// and nothing else to either, also no _INBOX. Two agents of the same name are not noticed. A message
// may have 1 MiB, which is NATS's own default (max_payload).
type NATS struct {
	URL          string // tls://HOST:PORT or nats://HOST:PORT, several separated by commas; without user and password
	Creds        string // path of a credentials file (a JWT and a seed), or
	NKeySeedFile string // path of a file with an nkey's seed; neither: the server lets everybody in
	CA           string // path of the certificate of an authority; "" is this system's
	Plain        bool   // allows a connection without TLS to another machine

	Logf func(string, ...any) // of an operator: when the connection is lost and made again, what the server denies; nil for none
}

// options are the settings of NATS's client. Errors are of type *advice.Error.
func (n NATS) options() ([]nats.Option, error) {
	secure, err := n.secure()
	if err != nil {
		return nil, &advice.Error{Doing: "connect to " + clean(n.shown()), Err: err, Hint: "a URL is tls://HOST:PORT or nats://HOST:PORT"}
	}
	var options []nats.Option
	if secure {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if n.CA != "" {
			if config.RootCAs, err = authority(n.CA); err != nil {
				return nil, &advice.Error{Doing: "read the certificate " + n.CA, Err: err, Hint: "it is a file with PEM blocks"}
			}
		}
		options = append(options, nats.Secure(config))
	}
	switch {
	case n.Creds != "" && n.NKeySeedFile != "":
		return nil, &advice.Error{Doing: "connect to " + n.shown(), Err: errors.New("there are two kinds of credentials"), Hint: "give a credentials file or an nkey's seed"}
	case n.Creds != "":
		if _, err := os.Stat(n.Creds); err != nil {
			return nil, &advice.Error{Doing: "read the credentials file " + n.Creds, Err: host.Reason(err)}
		}
		options = append(options, nats.UserCredentials(n.Creds))
	case n.NKeySeedFile != "":
		key, err := nats.NkeyOptionFromSeed(n.NKeySeedFile)
		if err != nil {
			return nil, &advice.Error{Doing: "read the nkey's seed in " + n.NKeySeedFile, Err: host.Reason(err), Hint: "`nk -gen user` makes one"}
		}
		options = append(options, key)
	}
	return options, nil
}

// secure checks the URL and reports whether TLS is required.
func (n NATS) secure() (bool, error) {
	need := n.CA != ""
	for one := range strings.SplitSeq(n.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil || u.Host == "":
			return false, errors.New("the URL names no host") // the cause may quote a password
		case u.User != nil:
			return false, errors.New("a user or a password in the URL is seen by others; give a file with credentials")
		case u.Scheme == "tls":
			need = true
		case u.Scheme != "nats":
			return false, fmt.Errorf("the scheme %q is not known", clean(u.Scheme))
		case !n.Plain && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
			need = true
		}
	}
	return need, nil
}

// shown is the URL without user and password.
func (n NATS) shown() string {
	var all []string
	for one := range strings.SplitSeq(n.URL, ",") {
		if i := strings.LastIndex(one, "@"); i >= 0 {
			one = one[i+1:]
		}
		all = append(all, strings.TrimSpace(one))
	}
	return strings.Join(all, ",")
}

func authority(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, host.Reason(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("it has no certificate")
	}
	return pool, nil
}

// open connects to an existing NATS server; agent is "" for an operator.
func (n NATS) open(ctx context.Context, what, agent string, own keys, logf func(string, ...any)) (*natsLine, error) {
	options, err := n.options()
	if err != nil {
		return nil, err
	}
	line, err := newLink(what, &stamp{}, true, logf).openNATS(ctx, n.URL, agent, own.publicSeal, options...)
	doing := "connect to " + n.shown()
	if err != nil {
		return nil, n.failed(doing, err)
	}
	if most := line.conn.MaxPayload(); most < MaxMessage {
		line.link.close()
		return nil, &advice.Error{Doing: doing, Err: fmt.Errorf("the server allows messages of %d bytes only", most), Hint: "set max_payload to 1MB in its configuration"}
	}
	return line, nil
}

// failed is the error of a first connection.
func (n NATS) failed(doing string, err error) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	switch {
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return &advice.Error{Doing: doing, Err: errors.New("no server answers"), Hint: "check the address, and whether the server runs"}
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return &advice.Error{Doing: doing, Err: errors.New("the server refused the credentials"), Hint: "its administrator gives credentials"}
	case errors.Is(err, nats.ErrSecureConnWanted):
		return &advice.Error{Doing: doing, Err: errors.New("the server has no TLS"), Hint: "use a server with TLS, or allow a connection without it"}
	case errors.As(err, &unknown), errors.As(err, &name):
		return &advice.Error{Doing: doing, Err: err, Hint: "give the certificate of the authority that signed the server's"}
	}
	return &advice.Error{Doing: doing, Err: natsReason(err)}
}

// connectAgentNATS connects an agent to an existing NATS server.
func connectAgentNATS(ctx context.Context, cfg AgentConfig, own keys) (*Agent, error) {
	name := cfg.Name
	if name == "" {
		host, err := os.Hostname()
		if name = nameOf(host); err != nil || !ValidName(name) {
			return nil, &advice.Error{Doing: "name this agent after its host", Err: ErrName, Hint: "give the agent a name"}
		}
	}
	line, err := cfg.NATS.open(ctx, "agent "+name, name, own, cfg.Logf)
	if err != nil {
		return nil, err
	}
	if err := line.listen("connect to "+cfg.NATS.shown(), "its administrator has to allow it to subscribe to "+downSubject(name)); err != nil {
		line.link.close()
		return nil, err
	}
	return &Agent{link: line.link, name: name, keys: own}, nil
}

// ConnectOperatorNATS connects to an existing NATS server instead. Token, Revoke and Agents then
// return ErrExternal. Errors are of type *advice.Error.
func ConnectOperatorNATS(ctx context.Context, server NATS) (*Operator, error) {
	seed, seal, err := newSeeds() // the key that seals is in what is sealed
	if err != nil {
		return nil, err
	}
	own, err := keysOf(seed, seal)
	if err != nil {
		return nil, err
	}
	line, err := server.open(ctx, "operator", "", own, server.Logf)
	if err != nil {
		return nil, err
	}
	return &Operator{link: line.link, keys: own, nats: line}, nil
}
