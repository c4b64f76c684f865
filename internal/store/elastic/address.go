package elastic

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"carronade/internal/conn"
	"carronade/internal/place"
	"carronade/internal/secret"
	"carronade/protocol"
)

// requestTimeout is the timeout of a request.
const requestTimeout = 30 * time.Second

// newClient returns a client for an address. It reads the secrets and the certificates that the
// address names.
func newClient(a *place.Address) (*client, error) {
	c := &client{base: a.URL(), place: a.Place(), prefix: a.Prefix}
	password, err := reference("password", a.Password)
	if err != nil {
		return nil, err
	}
	key, err := reference("api-key", a.APIKey)
	if err != nil {
		return nil, err
	}
	if key != "" {
		c.auth = "ApiKey " + key
		c.secrets.Add(key)
	}
	if a.User != "" {
		c.login(a.User, password)
	}
	var roots *x509.CertPool
	if a.CA != "" {
		pem, err := place.ReadFile(a.CA)
		if err == nil {
			roots = x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("%s holds no certificate", a.CA)
			}
		}
		if err != nil {
			return nil, &protocol.Error{Doing: "read the store's ca", Err: err, Hint: "give a file of certificates in PEM form"}
		}
	}
	c.http = newHTTP(roots)
	return c, nil
}

// newHTTP returns a client with connections of its own. Nil roots are the system's.
func newHTTP(roots *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 4
	return conn.HTTPClient(t)
}

// reference reads a secret that the address refers to; "" if it has none.
func reference(name string, ref place.Place) (string, error) {
	if ref.Kind == place.Default {
		return "", nil
	}
	text, err := secret.ReadFrom(ref)
	if err != nil {
		return "", &protocol.Error{Doing: "read the store's " + name, Err: err, Hint: "give " + name + "=env:NAME or " + name + "=file:PATH"}
	}
	return text, nil
}
