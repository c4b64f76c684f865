package secret

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// The words for keys that are as sensitive as a password. The word key alone often means
	// something else: that of a map, a table, a message.
	keys = `(?:api|access|account|app|client|encryption|decryption|ingest(?:ion)?|instrumentation|integration|license|master|private|routing|secret|service|shared|signing|storage|subscription|write|hmac|key[-_.]?store|cert[-_.]?store)[-_.]?keys?`
	// The words that the name of a setting with a secret contains or ends in. They include
	// Elastic's cloud.auth and the user.info of a schema registry's clients, which are
	// NAME:PASSWORD, ZooKeeper's superDigest, and addresses to which anyone who knows them may
	// write.
	names = `pass[-_]?wor[dt]|passw?d|pwd|pass[-_]?(?:phrase|code)|kennwort|secret|token|` + keys + `|creds|credentials?|authorization|cookie|jaas|cloud[-_.]?auth|user[-_.]?info|superdigest|masterauth|confluent[-_.]license|webhook|connection[-_]?string`
	// What may follow a name's end.
	tail = `[-_.]?(?:value|text|base64|config|key)`
	// A name of several secrets: below it are arbitrary names, and secrets.
	plurals = `(?i)(?:` + names + `)(?:s|[-_.]?(?:list|map|set|table|store)s?)`
)

// lazily compiles a pattern when it is first needed: those with all names are large, and most
// processes need few of them.
func lazily(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	secretName = lazily(`(?i)(?:(?:` + names + `)s?|(?:^|[-_.])(?:pass|pw)|(?:store|key|require)pass)(?:` + tail + `)?$`)
	likelyName = lazily(`(?i)^(?:[\w.\-]*(?:` + names + `)[\w\-]*(?:` + tail + `)?|[\w.\-]*pass|(?:[\w.\-]*[-_.])?pw)$`)
	plural     = lazily(plurals)
	capitals   = regexp.MustCompile(`^-?D?[A-Z][A-Z0-9_]*_AUTH$`)
	authName   = regexp.MustCompile(`(?i)^-*(?:.*[-_.])?auth["' ]*$`)
	// Words that only happen to end like a short form of password.
	otherPass = regexp.MustCompile(`(?i)(?:^|[-_.])(?:by|com|encom|sur|tres|over|under|usefirst|tryfirst|clear)pass$`)
	passName  = regexp.MustCompile(`(?i)(?:^|[-_.])(?:pass|pw)$`)
	// The family of flags that are followed by a value, whatever it begins with.
	passwordFlag = regexp.MustCompile(`(?i)(?:pass|pw|pwd|passwd|passphrase|password)$`)
	// A method of logging in.
	method = regexp.MustCompile(`(?i)^(?:|none|required|requested|optional|want|need|true|false|yes|no|on|off|0|1|basic|digest|kerberos|ntlm|negotiate|oauth2?|oauthbearer|ldaps?|sasl|tls|mtls|plain|simple|trust|bearer|gssapi|spnego|jwt|oidc|saml|x509|scram-sha-(?:1|256|512))$`)
)

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
	return IsName(name) && !isMode(name, value) || authName.MatchString(name) && isLogin(value)
}

// isLikely reports whether values of this name are to be hidden in texts,
// which includes more names than IsName.
func isLikely(name string) bool {
	return likelyName().MatchString(name) && !otherPass.MatchString(name) || IsName(name)
}

// isMode reports whether the value of NAME_AUTH describes a method of logging in.
func isMode(name, value string) bool {
	return strings.HasSuffix(name, "_AUTH") && !strings.EqualFold(name, "cloud_auth") && (isMethod(value) || strings.Contains(value, "://"))
}

func isMethod(value string) bool { return method.MatchString(strings.Trim(value, "\"' \t\r\n")) }

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

// authItem is an item of a list of methods, or of a name and a password.
var authItem = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,"'\-][^\s,"']*`)

// isLoginOrList reports whether a value is a login, or a list that is a name and a password or has
// a login as an item.
func isLoginOrList(value string) bool {
	items := authItem.FindAllString(strings.Trim(value, "[]{}"), -1)
	return isLogin(value) || slices.ContainsFunc(items, isLogin) || len(items) == 2 && !slices.ContainsFunc(items, isMethod)
}
