package place

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"carronade/internal/advice"
)

// An Address is that of a store in Elasticsearch or OpenSearch,
// elasticsearch[+https]://HOST:PORT[/PREFIX][?user=NAME&password=REF][&api-key=REF][&ca=FILE].
type Address struct {
	TLS      bool
	Host     string // HOST:PORT
	Prefix   string // begins the names of the indices
	User     string // "": none
	Password Place  // a reference; Default: none
	APIKey   Place  // the same
	CA       string // the file with the authorities of the server's certificate; "": the system's
}

// AddressHint shows the forms of such an address.
const AddressHint = "such as elasticsearch+https://es.example:9200/carronade?user=ops&password=env:ES_PASSWORD, or api-key=env:ES_KEY"

// defaultPrefix begins the names of the indices.
const defaultPrefix = "carronade"

var prefixForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,99}$`)

// Place is the address without a login.
func (a *Address) Place() string {
	scheme := clusterScheme
	if a.TLS {
		scheme = clusterTLSScheme
	}
	return scheme + "://" + a.Host + "/" + a.Prefix
}

// URL is that of the server.
func (a *Address) URL() string {
	if a.TLS {
		return "https://" + a.Host
	}
	return "http://" + a.Host
}

func parseAddress(text string) (*Address, error) {
	wrong := func(format string, args ...any) (*Address, error) {
		return nil, &advice.Error{Err: fmt.Errorf("read the address of the store: "+format, args...), Hint: AddressHint}
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("it is not a URL")
	}
	if u.Hostname() == "" {
		return wrong("it names no host")
	}
	if u.User != nil {
		return wrong("a user or password before the host is visible to others")
	}
	a := &Address{TLS: u.Scheme == clusterTLSScheme, Host: u.Host, Prefix: cmp.Or(strings.Trim(u.Path, "/"), defaultPrefix)}
	if u.Port() == "" {
		a.Host = strings.TrimSuffix(u.Host, ":") + ":9200"
	}
	if !prefixForm.MatchString(a.Prefix) {
		return wrong("%q cannot begin the name of an index: lower case letters, digits, - and _ can", a.Prefix)
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("its parameters are not NAME=VALUE&NAME=VALUE")
	}
	for name, values := range parameters {
		if len(values) > 1 {
			return wrong("the parameter %s is there twice", name)
		}
		switch name {
		case "user":
			a.User = values[0]
		case "password":
			a.Password = Reference(values[0])
		case "api-key":
			a.APIKey = Reference(values[0])
		case "ca":
			a.CA = values[0]
		default:
			return wrong("unknown parameter %q", name)
		}
	}
	switch {
	case a.APIKey.Kind != Default && (a.User != "" || a.Password.Kind != Default):
		return wrong("it has both a password and an API key")
	case (a.User == "") != (a.Password.Kind == Default):
		return wrong("user and password go together")
	}
	for name, secret := range map[string]Place{"password": a.Password, "api-key": a.APIKey} {
		if secret.Kind == Text {
			return nil, &advice.Error{
				Err:  fmt.Errorf("read the store's %s: an address must not contain secrets: it is visible to others", name),
				Hint: "give " + name + "=env:NAME or " + name + "=file:PATH",
			}
		}
	}
	return a, nil
}

// OfServer is the address of the store in the Elasticsearch or OpenSearch at a URL, with a user and
// the reference of a password; user "": no login.
func OfServer(server, user, ref string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", &advice.Error{Err: fmt.Errorf("%.40q is not a URL", server), Hint: "such as http://localhost:9200"}
	}
	switch u.Scheme {
	case "http", clusterScheme:
		u.Scheme = clusterScheme
	case "https", clusterTLSScheme:
		u.Scheme = clusterTLSScheme
	default:
		return "", &advice.Error{Err: fmt.Errorf("%q is not an http or https URL", u.Redacted()), Hint: "such as http://localhost:9200"}
	}
	if user != "" {
		u.RawQuery = "user=" + url.QueryEscape(user) + "&password=" + strings.NewReplacer("%3A", ":", "%2F", "/").Replace(url.QueryEscape(ref))
	}
	return u.String(), nil
}
