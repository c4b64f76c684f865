package conn

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"

	"carronade/internal/place"
	"carronade/protocol"
)

// A Text is a PEM text and a description of its origin, for errors.
type Text struct {
	Data []byte
	From string
}

// ReadText reads the PEM file that an option or a property names; from describes that
// option or property. Without a file, the text is empty.
func ReadText(file, from string) (Text, error) {
	if file == "" {
		return Text{From: from}, nil
	}
	data, err := place.ReadFile(file)
	if err != nil {
		return Text{From: from}, &protocol.Error{Doing: "read " + from, Err: err, Hint: "give a file in PEM form"}
	}
	return Text{data, from}, nil
}

// Material contains what a TLS configuration is made of. It includes a private key, so
// it must not be printed.
type Material struct {
	CA, Cert, Key Text // empty: the system's authorities, no client certificate
	ServerName    string
	SkipVerify    bool
}

// ReadMaterial reads the options of TLSOptions.
func ReadMaterial(v protocol.Values) (m Material, err error) {
	m.ServerName, m.SkipVerify = v.String("tls-server-name"), v.Bool("tls-insecure-skip-verify")
	for _, t := range []struct {
		to   *Text
		name string
	}{{&m.CA, "tls-ca"}, {&m.Cert, "tls-cert"}, {&m.Key, "tls-key"}} {
		if *t.to, err = ReadText(v.String(t.name), "--"+t.name); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Config returns a client's configuration. A text with a certificate may also contain
// its key. Errors come with a hint.
func (m Material) Config() (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         m.ServerName,
		InsecureSkipVerify: m.SkipVerify, // requested by a flag, which the report shows
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if len(m.CA.Data) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(m.CA.Data) {
			return nil, &protocol.Error{Doing: "read " + m.CA.From, Err: errors.New("it has no certificate in PEM form"), Hint: "it must begin with -----BEGIN CERTIFICATE-----"}
		}
	}
	cert, key := m.Cert.Data, m.Key.Data
	if len(key) == 0 {
		key = cert
	}
	if len(cert) > 0 {
		if block, _ := pem.Decode(key); block != nil && block.Type == "ENCRYPTED PRIVATE KEY" {
			return nil, &protocol.Error{Doing: "read the client's private key", Err: errors.New("it is encrypted"), Hint: "decrypt it: openssl pkcs8 -in KEY -out PLAIN_KEY"}
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, &protocol.Error{Doing: "read the client's certificate", Err: err, Hint: m.Cert.From + " and " + cmp.Or(m.Key.From, m.Cert.From) + " must have a certificate and its private key in PEM form"}
		}
		cfg.Certificates = []tls.Certificate{pair}
	} else if len(key) > 0 {
		return nil, &protocol.Error{Doing: "read the options", Err: errors.New("a private key without a certificate"), Hint: "add --tls-cert FILE"}
	}
	return cfg, nil
}
