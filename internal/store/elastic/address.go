package elastic

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"carronade/internal/secret"
	"carronade/target"
)

// Schemes are the schemes of addresses of these stores.
var Schemes = []string{"elasticsearch", "elasticsearch+https"}

// defaultPrefix begins the names of the indices.
const defaultPrefix = "carronade"

// requestTimeout is the timeout of a request.
const requestTimeout = 30 * time.Second

const addressHint = "such as elasticsearch+https://es.example:9200/carronade?user=ops&password=env:ES_PASSWORD, or api-key=env:ES_KEY"

// parse parses an address:
// elasticsearch[+https]://HOST:PORT[/PREFIX][?user=NAME
// &password=REF][&api-key=REF][&ca=FILE]. Secrets are references.
func parse(address string) (*client, error) {
	wrong := func(format string, args ...any) error {
		return &target.Error{Doing: "read the address of the store", Err: fmt.Errorf(format, args...), Hint: addressHint}
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, wrong("it is not a URL")
	}
	if u.Host == "" {
		return nil, wrong("it names no host")
	}
	if u.User != nil {
		return nil, wrong("a user or password before the host is visible to others")
	}
	c := &client{base: "http://", prefix: strings.Trim(u.Path, "/")}
	if u.Scheme == "elasticsearch+https" {
		c.base = "https://"
	}
	host := u.Host
	if u.Port() == "" {
		host += ":9200"
	}
	c.place = u.Scheme + "://" + host
	c.base += host
	c.prefix = cmp.Or(c.prefix, defaultPrefix)
	if !prefixForm.MatchString(c.prefix) {
		return nil, wrong("%q cannot begin the name of an index: lower case letters, digits, - and _ can", c.prefix)
	}
	c.place += "/" + c.prefix
	var roots *x509.CertPool
	user, password := "", ""
	for key, values := range u.Query() {
		v := values[len(values)-1]
		switch key {
		case "user":
			user = v
		case "password":
			if password, err = reference(key, v); err != nil {
				return nil, err
			}
		case "api-key":
			k, err := reference(key, v)
			if err != nil {
				return nil, err
			}
			c.auth = "ApiKey " + k
			c.secrets.Add(k)
		case "ca":
			pem, err := os.ReadFile(v)
			if err != nil {
				return nil, &target.Error{Doing: "read the store's ca", Err: err, Hint: "give a file of certificates in PEM form"}
			}
			roots = x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) {
				return nil, &target.Error{Doing: "read the store's ca", Err: fmt.Errorf("%s holds no certificate", v), Hint: "give a file of certificates in PEM form"}
			}
		default:
			return nil, wrong("unknown parameter %q", key)
		}
	}
	switch {
	case c.auth != "" && (user != "" || password != ""):
		return nil, wrong("it has both a password and an API key")
	case (user == "") != (password == ""):
		return nil, wrong("user and password go together")
	case user != "":
		c.login(user, password)
	}
	c.http = newHTTP(roots)
	return c, nil
}

// newHTTP returns a client with connections of its own. Nil roots are the system's.
func newHTTP(roots *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 4
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

var prefixForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,99}$`)

// reference reads a secret that the address refers to.
func reference(key, ref string) (string, error) {
	text, referred, err := secret.Read(ref)
	if err == nil && !referred {
		err = errors.New("an address must not contain secrets: it is visible to others")
	}
	if err != nil {
		return "", &target.Error{Doing: "read the store's " + key, Err: err, Hint: "give " + key + "=env:NAME or " + key + "=file:PATH"}
	}
	return text, nil
}
