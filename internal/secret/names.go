package secret

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"carronade/internal/place"
)

// names are the words that the name of a setting with a secret contains or ends
// in. They include Elastic's cloud.auth and the user.info of a schema
// registry's clients, which are NAME:PASSWORD, ZooKeeper's superDigest, Kafka's
// ssl.keystore.key, and addresses to which anyone who knows them may write.
const names = `pass[-_]?wor[dt]|passw?d|pwd|pass[-_]?(?:phrase|code)|kennwort|secret|token|` + keys + `|creds|credentials?|authorization|cookie|jaas|cloud[-_.]?auth|user[-_.]?info|superdigest|masterauth|confluent[-_.]license|webhook|connection[-_]?string`

// keys are the words for keys that are as sensitive as a password. The word key
// alone often means something else: that of a map, a table, a message.
const keys = `(?:api|access|account|app|client|encryption|decryption|ingest(?:ion)?|instrumentation|integration|license|master|private|routing|secret|service|shared|signing|storage|subscription|write|hmac|key[-_.]?store|cert[-_.]?store)[-_.]?keys?`

// pass are the short forms of password, which are also harmless words: see
// plainPass.
const pass = `[\w.\-]*pass\b|(?:[\w.\-]*[-_.]|\b)pw\b`

// tail is what may follow a name's end.
const tail = `(?:[-_.]?(?:value|text|base64|config|key))?`

// word is the name of a setting with a secret. In capitals, like environment
// variables, a name that ends in _AUTH is one, too.
const word = `(?:(?i:[\w.\-]*(?:` + names + `)[\w\-]*` + tail + `)|(?i:` + pass + `)|[A-Z][A-Z0-9_]*_AUTH\b)`

// lazily compiles a pattern when it is first needed: those with all names are large, and most
// processes need few of them.
func lazily(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	secretName = lazily(`(?i)(?:(?:` + names + `)s?|(?:^|[-_.])(?:pass|pw)|(?:store|key|require)pass)` + tail + `$`)
	capitals   = regexp.MustCompile(`^-?D?[A-Z][A-Z0-9_]*_AUTH$`)
	authName   = regexp.MustCompile(`(?i)(?:^|[-_.])auth$`)
	secretWord = regexp.MustCompile(word)
	wholeWord  = lazily(`^` + word + `$`)
	plainPass  = regexp.MustCompile(`(?i)(?:^|[-_.])(?:pass|pw)$`)
	// The family of flags that are followed by a value, whatever it begins with.
	password = regexp.MustCompile(`(?i)(?:pass|pw|pwd|passwd|passphrase|password)$`)
	option   = regexp.MustCompile(`^-(?:[a-zA-Z]|-[a-z]+(?:-[a-z]+)*(?:=.*)?)$`)
	scheme   = regexp.MustCompile(`(?i)\b((?:bearer|apikey)\s+)([\w+/=.~\-]{4,})`)
	// The signature or key in an address.
	signature = regexp.MustCompile(`(?i)([?&](?:sig|signature|x-amz-signature|x-goog-signature|key|code)=)([^\s&"'<>]+)`)
	// A setting whose value may be a login: see isLogin.
	auth = regexp.MustCompile(`(?i)((?:^|[^\w])(?:[\w.\-]*[-_.])?auth["']?(?:[ \t]*[=:][ \t]*|[ \t]+))("[^"]+"|'[^']+'|[^\s,;&"'{}\[\]]+)`)
)

// notPass are words that end like the short form of password.
var notPass = []string{"bypass", "compass", "encompass", "surpass", "trespass", "overpass", "underpass", "usefirstpass", "tryfirstpass", "clearpass"}

// notAuth are values of settings that describe a method of logging in.
var notAuth = []string{"", "none", "required", "requested", "optional", "want", "need", "true", "false", "yes", "no", "on", "off", "0", "1", "basic", "digest", "kerberos", "ntlm", "negotiate", "oauth", "ldap", "sasl", "tls", "plain", "simple", "trust", "bearer", "gssapi", "spnego", "jwt", "oauth2", "oauthbearer", "oidc", "saml", "mtls", "ldaps", "x509", "scram-sha-1", "scram-sha-256", "scram-sha-512"}

// IsName reports whether a setting of this name is a secret, such as
// "output.elasticsearch.password".
func IsName(name string) bool {
	name = strings.TrimRight(name, "\"' ")
	return secretName().MatchString(name) || capitals.MatchString(name)
}

// Is reports whether a setting of this name and value is a plain secret: by its
// name, or because the name is one of authentication and the value is a login,
// as in "proxy.auth=NAME:PASSWORD". A reference is not a secret.
func Is(name, value string) bool {
	if value == "" || IsReference(value) {
		return false
	}
	return IsName(name) && !isMode(name, value) || isAuth(name) && isLogin(value)
}

// isLikelyName reports whether values of this name are to be hidden in texts,
// which includes more names than IsName.
func isLikelyName(name string) bool {
	return wholeWord().MatchString(name) && !isHarmless(name) || IsName(name)
}

// isHarmless reports whether a name only happens to end like a short form of
// password.
func isHarmless(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(notPass, name[strings.LastIndexAny(name, "-_.")+1:])
}

// isMode reports whether the value of NAME_AUTH describes a method of logging
// in.
func isMode(name, value string) bool {
	return strings.HasSuffix(name, "_AUTH") && !strings.EqualFold(name, "cloud_auth") &&
		(isMethod(value) || strings.Contains(value, "://"))
}

// isMethod reports whether a value describes a method of logging in.
func isMethod(value string) bool {
	return slices.Contains(notAuth, strings.ToLower(strings.Trim(value, "\"' \t\r\n")))
}

// IsReference reports whether a value is the reference of a secret and not the
// secret: env:NAME or file:PATH.
func IsReference(value string) bool {
	ref := place.Reference(value)
	return ref.Kind != place.Text && ref.Value != ""
}

func isAuth(name string) bool {
	return authName.MatchString(strings.TrimRight(strings.TrimLeft(name, "-"), "\"' "))
}

// isLogin reports whether a value is NAME:PASSWORD, plain or in base64, and not
// an address.
func isLogin(value string) bool {
	value = strings.Trim(value, `"' `)
	if name, password, ok := strings.Cut(value, ":"); ok {
		return name != "" && password != "" && !strings.HasPrefix(password, "//") && !strings.ContainsAny(name, " \t")
	}
	text, err := base64.StdEncoding.DecodeString(value)
	return err == nil && utf8.Valid(text) && strings.Contains(string(text), ":")
}
