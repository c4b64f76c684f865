package secret

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// names are what the name of a setting with a secret ends in or holds; among
// them Elastic's cloud.auth and the user.info of a schema registry's clients,
// which are NAME:PASSWORD, and ZooKeeper's superDigest.
const names = `passw(?:or)?d|passwd|pwd|passphrase|secret|token|(?:api|access|private|encryption|signing)[-_.]?key|credentials?|authorization|cookie|jaas|cloud[-_.]?auth|user[-_.]?info|superdigest|confluent[-_.]license`

// pass are the short forms of password, which are harmless words too.
const pass = `(?:[\w.\-]*[-_.]|\b)(?:pass|pw)`

// tail is what may follow a name's end.
const tail = `(?:[-_.]?(?:value|text|base64|config))?`

const (
	// given is a value as it stands in a script: quoted, or up to a blank.
	given = inQuotes + `|[^\s;&|"'\-][^\s;&|"']*`
	// inQuotes is a value in quotes.
	inQuotes = `"(?:[^"\\]|\\.)*"|'[^']*'`
)

var (
	secretName = regexp.MustCompile(`(?i)(?:` + names + `|(?:^|[-_.])(?:pass|pw))` + tail + `$`)
	authName   = regexp.MustCompile(`(?i)(?:^|[-_.])auth$`)
	// A setting within a text: the name, what joins it to its value, the value.
	// Only one in quotes may stand on the next line: in YAML what stands there is
	// most often the next name.
	quotedSetting = regexp.MustCompile(`(?i)((?:[\w.\-]*(?:` + names + `)[\w\-]*)["']?\s*[=:]\s*)(` + inQuotes + `)`)
	listSetting   = regexp.MustCompile(`(?i)((?:[\w.\-]*(?:` + names + `)[\w\-]*)["']?\s*[=:]\s*)(\[[^\]]*\]?)`)
	setting       = regexp.MustCompile(`(?i)((?:[\w.\-]*(?:` + names + `)[\w\-]*)["']?[ \t]*[=:][ \t]*)((?:(?:bearer|basic|apikey)\s+)?[^\s,;&"'}\]]+)`)
	short         = regexp.MustCompile(`(?i)(` + pass + `(?:["']?\s*=\s*|["']\s*:\s*|:))(` + inQuotes + `|[^\s,;&"'}\]]+)`)
	flag          = regexp.MustCompile(`(?i)((?:^|[\s"'])-{1,2}(?:[\w.\-]*(?:` + names + `)|` + pass + `)[ \t]+)(` + given + `)`)
	login         = regexp.MustCompile(`((?:^|[\s"'])(?:-[uU]|--(?:proxy-)?user)[ \t]+["']?[^\s:"']+:)([^\s"']+)`)
	userinfo      = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.\-]*://)([^/\s"'<>?#]*)@`)
	scheme        = regexp.MustCompile(`(?i)\b((?:bearer|apikey)\s+)([\w+/=.~\-]{4,})`)
	// A setting whose value may be a login: see isLogin.
	auth = regexp.MustCompile(`(?i)((?:^|[^\w])(?:[\w.\-]*[-_.])?auth["']?(?:[ \t]*[=:][ \t]*|[ \t]+))("[^"]+"|'[^']+'|[^\s,;&"'{}\[\]]+)`)
)

// IsName reports whether a setting of this name holds a secret, such as
// "output.elasticsearch.password".
func IsName(name string) bool {
	return secretName.MatchString(strings.TrimRight(name, "\"' "))
}

// Is reports whether a setting of this name and value holds a secret in clear:
// by its name, or because the name is one of authentication and the value is a
// login, as in "proxy.auth=NAME:PASSWORD". A reference is none.
func Is(name, value string) bool {
	if value == "" || IsReference(value) {
		return false
	}
	return IsName(name) || isAuth(name) && isLogin(value)
}

// IsReference reports whether a value says where a secret is, and is none
// itself: env:NAME or file:PATH.
func IsReference(value string) bool {
	kind, of, _ := strings.Cut(value, ":")
	return (kind == "env" || kind == "file") && of != ""
}

func isAuth(name string) bool {
	return authName.MatchString(strings.TrimRight(strings.TrimLeft(name, "-"), "\"' "))
}

// isUser reports whether a flag is curl's for NAME:PASSWORD.
func isUser(flag string) bool {
	return slices.Contains([]string{"-u", "-U", "--user", "--proxy-user"}, flag)
}

// isLogin reports whether a value is NAME:PASSWORD, as it is or in base64, and
// not an address.
func isLogin(value string) bool {
	value = strings.Trim(value, `"' `)
	if name, password, ok := strings.Cut(value, ":"); ok {
		return name != "" && password != "" && !strings.HasPrefix(password, "//") && !strings.ContainsAny(name, " \t")
	}
	text, err := base64.StdEncoding.DecodeString(value)
	return err == nil && utf8.Valid(text) && strings.Contains(string(text), ":")
}
