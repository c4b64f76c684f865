package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"carronade/internal/conn"
	"carronade/internal/place"
	"carronade/protocol"
)

// The SASL mechanisms.
const (
	MechPlain    = "PLAIN"
	MechScram256 = "SCRAM-SHA-256"
	MechScram512 = "SCRAM-SHA-512"
	MechOAuth    = "OAUTHBEARER"
	MechAWS      = "AWS_MSK_IAM"
)

// dialTimeout bounds one attempt to connect, TLS and login included.
const dialTimeout = 10 * time.Second

// A Security describes how connections are made: buffers, TLS and login. It is
// safe for concurrent use. It contains secrets, so it prints as a
// summary.
type Security struct {
	TLS        *tls.Config // nil: plaintext
	SkipVerify bool
	anyName    bool           // a certificate's chain is checked, but not its name
	Mechanism  sasl.Mechanism // nil: no login
	User       string
	sendBuffer int // bytes; 0: the operating system's default
	recvBuffer int
	clientID   string
}

// String describes the settings without their secrets: "SASL_SSL,
// SCRAM-SHA-256 as alice, any certificate".
func (s *Security) String() string {
	parts := []string{s.Protocol()}
	if s.Mechanism != nil {
		as := s.Mechanism.Name()
		if s.User != "" {
			as += " as " + s.User
		}
		parts = append(parts, as)
	}
	switch {
	case s.SkipVerify:
		parts = append(parts, "any certificate is accepted")
	case s.anyName:
		parts = append(parts, "a certificate of any name is accepted")
	}
	return strings.Join(parts, ", ")
}

// GoString keeps %#v from printing secrets.
func (s *Security) GoString() string { return s.String() }

// Plaintext is the protocol without TLS and without a login.
const Plaintext = "PLAINTEXT"

// Protocol returns Kafka's name for the kind of listener.
func (s *Security) Protocol() string {
	switch {
	case s.TLS != nil && s.Mechanism != nil:
		return "SASL_SSL"
	case s.TLS != nil:
		return "SSL"
	case s.Mechanism != nil:
		return "SASL_PLAINTEXT"
	}
	return Plaintext
}

// parseSecurity reads the security options, and a Java client's properties
// where an option is not set.
func parseSecurity(v protocol.Values, props map[string]string) (*Security, error) {
	s := &Security{
		sendBuffer: int(v.Size("send-buffer")),
		recvBuffer: int(v.Size("recv-buffer")),
		SkipVerify: v.Bool("tls-insecure-skip-verify"),
	}
	transport := strings.ToUpper(props["security.protocol"])
	switch transport {
	case "", Plaintext, "SSL", "SASL_PLAINTEXT", "SASL_SSL":
	default:
		return nil, fmt.Errorf("client property security.protocol: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
	}
	useTLS := v.Bool("tls") || v.Has("tls-ca") || v.Has("tls-cert") || v.Has("tls-key") ||
		v.Has("tls-server-name") || s.SkipVerify || strings.HasSuffix(transport, "SSL")
	var err error
	if useTLS {
		s.SkipVerify = s.SkipVerify || strings.EqualFold(props["enable.ssl.certificate.verification"], "false") // librdkafka's
		if s.TLS, err = parseTLS(v, props, s.SkipVerify); err != nil {
			return nil, err
		}
		if id, set := props["ssl.endpoint.identification.algorithm"]; set && (id == "" || strings.EqualFold(id, "none")) && !s.SkipVerify {
			// Java's setting for checking the chain, but not the name.
			verifyChainOnly(s.TLS)
			s.anyName = true
		}
	}
	if err := checkSecurity(useTLS, strings.HasPrefix(transport, "SASL_"), props); err != nil {
		return nil, err
	}
	mechanism := v.String("sasl-mechanism")
	if mechanism == "" && strings.HasPrefix(transport, "SASL_") {
		// GSSAPI is Java's default. It is refused below, instead of guessing.
		mechanism = cmp.Or(props["sasl.mechanism"], "GSSAPI")
	}
	if mechanism == "" {
		if v.Has("user") || v.Has("password") {
			return nil, &protocol.Error{
				Doing: "read the options", Err: errors.New("a user or a password without a mechanism"),
				Hint: "add --sasl-mechanism PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM",
			}
		}
		return s, nil
	}
	s.Mechanism, s.User, err = parseSASL(strings.ToUpper(mechanism), v, props)
	return s, err
}

func parseSASL(mechanism string, v protocol.Values, props map[string]string) (m sasl.Mechanism, user string, err error) {
	source, module := "sasl.jaas.config", ""
	var jaas map[string]string
	if text := props[source]; text != "" {
		if module, jaas, err = parseJAAS(text); err != nil {
			return nil, "", fmt.Errorf("%s: %w", source, err)
		}
	} else if !v.Has("user") && !v.Has("password") && props["sasl.username"] == "" {
		if source, module, jaas, err = jaasOfFile(); err != nil {
			return nil, "", err
		}
	}
	if !v.Has("user") || !v.Has("password") { // else the options say who logs in
		if err := checkIdentity(source, mechanism, module, jaas, props); err != nil {
			return nil, "", err
		}
	}
	user = cmp.Or(v.String("user"), jaas["username"], props["sasl.username"])
	password := cmp.Or(jaas["password"], props["sasl.password"])
	if v.Has("password") {
		if password, err = protocol.ReadSecret("password", v.String("password")); err != nil {
			return nil, "", err
		}
	}
	need := func(what, hint string) error {
		return &protocol.Error{Doing: "log in by " + mechanism, Err: fmt.Errorf("no %s was given", what), Hint: hint}
	}
	const passwordHint = "add --password env:NAME or --password file:PATH, or sasl.jaas.config in --client-config"
	switch mechanism {
	case MechPlain, MechScram256, MechScram512:
		if user == "" {
			return nil, "", need("user", "add --user NAME")
		}
		if password == "" {
			return nil, "", need("password", passwordHint)
		}
	}
	switch mechanism {
	case MechPlain:
		return plain.Auth{User: user, Pass: password}.AsMechanism(), user, nil
	case MechScram256:
		return scram.Auth{User: user, Pass: password, IsToken: jaas["tokenauth"] == "true"}.AsSha256Mechanism(), user, nil
	case MechScram512:
		return scram.Auth{User: user, Pass: password, IsToken: jaas["tokenauth"] == "true"}.AsSha512Mechanism(), user, nil
	case MechOAuth:
		if password != "" {
			return oauth.Auth{Token: password, Extensions: oauthExtensions(jaas)}.AsMechanism(), user, nil
		}
		source, user, err := parseOAuth(user, jaas, props)
		if err != nil {
			return nil, "", err
		}
		return oauth.Oauth(source), user, nil
	case MechAWS:
		if profile := jaas["awsProfileName"]; profile != "" {
			if user != "" || password != "" || v.Has("session-token") {
				return nil, "", refusedIdentity(mechanism, errors.New("both a key and awsProfileName were given"))
			}
			auth, err := awsProfile(profile)
			if err != nil {
				return nil, "", err
			}
			return auth.AsManagedStreamingIAMMechanism(), auth.AccessKey, nil
		}
		auth := aws.Auth{
			AccessKey:    cmp.Or(user, os.Getenv("AWS_ACCESS_KEY_ID")),
			SecretKey:    cmp.Or(password, os.Getenv("AWS_SECRET_ACCESS_KEY")),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		}
		if v.Has("session-token") {
			if auth.SessionToken, err = protocol.ReadSecret("session-token", v.String("session-token")); err != nil {
				return nil, "", err
			}
		}
		if auth.AccessKey == "" || auth.SecretKey == "" {
			return nil, "", need("access key and secret key", "add --user KEY --password env:NAME, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
		return auth.AsManagedStreamingIAMMechanism(), auth.AccessKey, nil
	}
	return nil, "", &protocol.Error{
		Doing: "read the options", Err: fmt.Errorf("unknown SASL mechanism %s", mechanism),
		Hint: "use --sasl-mechanism PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM",
	}
}

// parseTLS reads the TLS options, and the properties of those that were not given.
func parseTLS(v protocol.Values, props map[string]string, skipVerify bool) (*tls.Config, error) {
	m := conn.Material{ServerName: v.String("tls-server-name"), SkipVerify: skipVerify}
	var err error
	read := func(to *conn.Text, option string, java func() (conn.Text, error)) {
		switch file := v.String(option); {
		case err != nil:
		case file != "":
			*to, err = conn.ReadText(file, "--"+option)
		default:
			*to, err = java()
		}
	}
	read(&m.CA, "tls-ca", func() (conn.Text, error) {
		return javaStore("truststore", props["ssl.truststore.certificates"], props)
	})
	read(&m.Cert, "tls-cert", func() (conn.Text, error) {
		return javaStore("keystore", props["ssl.keystore.certificate.chain"], props)
	})
	read(&m.Key, "tls-key", func() (conn.Text, error) {
		const from = "the client properties of the private key"
		text := []byte(props["ssl.keystore.key"])
		if file := props["ssl.key.location"]; file != "" { // librdkafka's
			if text, err = place.ReadFile(file); err != nil {
				return conn.Text{}, failedStore(from, err)
			}
		}
		data, err := unlockPEM(text, props["ssl.key.password"])
		return conn.Text{Data: data, From: from}, failedStore(from, err)
	})
	if err != nil {
		return nil, err
	}
	return m.Config()
}

// verifyChainOnly checks the certificate's chain and validity, but not its name.
func verifyChainOnly(cfg *tls.Config) {
	roots := cfg.RootCAs
	cfg.InsecureSkipVerify = true // VerifyConnection does the same checks, except the name
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(c)
		}
		_, err := cs.PeerCertificates[0].Verify(opts)
		return err
	}
}

// Dial connects to a broker: TCP with the requested buffers, TLS, and login.
// The connection is ready for requests; without TLS it is a *net.TCPConn. Dial
// takes at most ten seconds, or until the context ends. Config.Explain has hints
// for its errors.
func (s *Security) Dial(ctx context.Context, addr string) (net.Conn, error) {
	nc, _, err := s.DialFor(ctx, addr)
	return nc, err
}

// DialFor is Dial for a connection that stays open: it also returns how long the
// login is valid.
func (s *Security) DialFor(ctx context.Context, addr string) (net.Conn, LoginTerm, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := s.dialTransport(ctx, addr)
	if err != nil {
		return nil, LoginTerm{}, err
	}
	if s.Mechanism == nil {
		return nc, LoginTerm{}, nil
	}
	stop := conn.Interrupt(ctx, nc)
	lifetime, err := s.Login(s.FirstMessage(ctx, addr), ExchangeOn(nc, s.clientID))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, LoginTerm{}, err
	}
	return nc, NewLoginTerm(lifetime), nil
}

// dialTransport connects by TCP, and TLS where configured, without login.
func (s *Security) dialTransport(ctx context.Context, addr string) (net.Conn, error) {
	d := conn.Dialer{TLS: s.TLS, SendBuffer: s.sendBuffer, RecvBuffer: s.recvBuffer}
	return d.Dial(ctx, addr)
}

// DialForClient connects for a franz-go client, which does the login.
func (s *Security) DialForClient(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return s.dialTransport(ctx, addr)
}

// kgoOpts returns the same settings for a franz-go client.
func (s *Security) kgoOpts() []kgo.Opt {
	opts := []kgo.Opt{kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
		return s.DialForClient(ctx, addr)
	})}
	if s.Mechanism != nil {
		opts = append(opts, kgo.SASL(s.Mechanism))
	}
	return opts
}
