package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"carronade/internal/conn"
	"carronade/internal/place"
	"carronade/protocol"
)

// tokenMargin is how long before its expiry a token is replaced.
const tokenMargin = 30 * time.Second

// oauthExtensions returns the options extension_NAME of a Java login module
// (KIP-342).
func oauthExtensions(jaas map[string]string) map[string]string {
	ext := map[string]string{}
	for k, v := range jaas {
		if name, ok := strings.CutPrefix(k, "extension_"); ok {
			ext[name] = v
		}
	}
	return ext
}

// parseOAuth returns the source of tokens that a Java client's properties
// configure: a token endpoint (KIP-768, the grant client_credentials), or the
// claims of an unsecured token for tests (KIP-255).
func parseOAuth(user string, jaas, props map[string]string) (func(context.Context) (oauth.Auth, error), string, error) {
	if token := jaas["oauth.access.token"]; token != "" {
		return func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: token, Extensions: oauthExtensions(jaas)}, nil
		}, user, nil
	}
	if endpoint := cmp.Or(props["sasl.oauthbearer.token.endpoint.url"], jaas["oauth.token.endpoint.uri"]); endpoint != "" {
		u, err := url.Parse(endpoint)
		if err == nil && u.Scheme == "file" && u.Path != "" { // KIP-768: a file with the token, which is read for each login
			return tokenFile(u.Path, oauthExtensions(jaas)), user, nil
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, "", errors.New("the token endpoint: want an http, https or file URL")
		}
		t := &tokenSource{
			endpoint: u,
			id:       cmp.Or(jaas["clientId"], jaas["oauth.client.id"], props["sasl.oauthbearer.client.credentials.client.id"], user),
			secret:   cmp.Or(jaas["clientSecret"], jaas["oauth.client.secret"], props["sasl.oauthbearer.client.credentials.client.secret"]),
			scope:    cmp.Or(jaas["scope"], jaas["oauth.scope"], props["sasl.oauthbearer.scope"]),
			ext:      oauthExtensions(jaas),
			encoded:  strings.EqualFold(props["sasl.oauthbearer.header.urlencode"], "true"),
			client:   conn.HTTPClient(http.DefaultTransport.(*http.Transport).Clone()),
		}
		t.client.Timeout = dialTimeout
		if t.id == "" || t.secret == "" {
			return nil, "", &protocol.Error{
				Doing: "log in by " + MechOAuth, Err: errors.New("no client id and secret for the token endpoint"),
				Hint: "set clientId and clientSecret in sasl.jaas.config",
			}
		}
		return t.get, t.id, nil
	}
	subject := cmp.Or(jaas["unsecuredLoginStringClaim_sub"], user)
	if subject == "" || jaas["unsecuredLoginStringClaim_sub"] == "" {
		return nil, "", &protocol.Error{
			Doing: "log in by " + MechOAuth, Err: errors.New("no token"),
			Hint: "add --password env:NAME or file:PATH with the token, or sasl.oauthbearer.token.endpoint.url in --client-config",
		}
	}
	return func(context.Context) (oauth.Auth, error) {
		return oauth.Auth{Token: unsecuredToken(jaas, time.Now()), Extensions: oauthExtensions(jaas)}, nil
	}, subject, nil
}

// tokenFile returns the source of tokens in a file, which another program renews.
func tokenFile(path string, ext map[string]string) func(context.Context) (oauth.Auth, error) {
	return func(context.Context) (oauth.Auth, error) {
		token, err := place.ReadFile(path)
		if err != nil {
			return oauth.Auth{}, fmt.Errorf("read the token: %w", err)
		}
		return oauth.Auth{Token: strings.TrimSpace(string(token)), Extensions: ext}, nil
	}
}

// unsecuredToken makes a JSON web token without signature, as the Java
// client's OAuthBearerUnsecuredLoginCallbackHandler does.
func unsecuredToken(jaas map[string]string, now time.Time) string {
	claims := map[string]any{
		"iat": float64(now.UnixMilli()) / 1000,
		"exp": float64(now.Add(time.Hour).UnixMilli()) / 1000,
	}
	for k, v := range jaas {
		if name, ok := strings.CutPrefix(k, "unsecuredLoginStringClaim_"); ok {
			claims[name] = v
		}
		if name, ok := strings.CutPrefix(k, "unsecuredLoginNumberClaim_"); ok {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				claims[name] = n
			}
		}
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	b64 := base64.RawURLEncoding
	return b64.EncodeToString([]byte(`{"alg":"none"}`)) + "." + b64.EncodeToString(body) + "."
}

// A tokenSource gets tokens from an endpoint and caches each until shortly
// before it expires. It is safe for concurrent use.
type tokenSource struct {
	endpoint          *url.URL
	id, secret, scope string
	ext               map[string]string
	encoded           bool // the id and the secret, as RFC 6749 wants; Java does not by default
	client            *http.Client

	mu      sync.Mutex
	token   string
	expires time.Time
}

func (t *tokenSource) get(ctx context.Context) (oauth.Auth, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == "" || time.Until(t.expires) < tokenMargin {
		if err := t.fetch(ctx); err != nil {
			return oauth.Auth{}, fmt.Errorf("get a token from %s: %w", t.endpoint.Redacted(), err)
		}
	}
	return oauth.Auth{Token: t.token, Extensions: t.ext}, nil
}

// fetch requests a token with the grant client_credentials (RFC 6749, section 4.4).
func (t *tokenSource) fetch(ctx context.Context) error {
	form := url.Values{"grant_type": {"client_credentials"}}
	if t.scope != "" {
		form.Set("scope", t.scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	id, secret := t.id, t.secret
	if t.encoded {
		id, secret = url.QueryEscape(id), url.QueryEscape(secret)
	}
	req.SetBasicAuth(id, secret)
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const maxBody = 1 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", resp.Status)
	}
	var answer struct {
		Token   string  `json:"access_token"`
		Expires float64 `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return errors.New("the answer is not JSON") // the error may quote the token
	}
	if answer.Token == "" {
		return errors.New("the answer has no access_token")
	}
	if answer.Expires <= 0 {
		answer.Expires = time.Hour.Seconds()
	}
	t.token, t.expires = answer.Token, time.Now().Add(time.Duration(answer.Expires*float64(time.Second)))
	return nil
}
