package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"carronade/internal/place"
	"carronade/protocol"
)

// parseJAAS reads the value of sasl.jaas.config, such as
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";
//
// as Kafka's JaasConfig does with Java's StreamTokenizer: blanks around =, comments of C and C++, and escapes
// in quotes. It returns the login module's class and its options. Errors never quote the text.
func parseJAAS(s string) (module string, options map[string]string, err error) {
	words, err := jaasTokens(s)
	if err != nil {
		return "", nil, err
	}
	return parseModules(words)
}

func parseModules(words []jaasToken) (module string, options map[string]string, err error) {
	for len(words) > 0 && words[len(words)-1] == ";" {
		words = words[:len(words)-1] // Java wants one
	}
	if len(words) == 0 {
		return "", nil, errors.New("it is empty")
	}
	if slices.Contains(words, ";") {
		return "", nil, errors.New("it has several login modules, and a client uses one")
	}
	options = map[string]string{}
	if len(words) > 1 {
		switch strings.ToLower(words[1].text()) {
		case "required", "requisite", "sufficient", "optional":
		default:
			return "", nil, errors.New("the second word must be 'required'")
		}
		for n, w := 1, words[2:]; len(w) > 0; n, w = n+1, w[3:] {
			if len(w) < 3 || w[1] != "=" || w[0] == "=" || w[2] == "=" {
				return "", nil, fmt.Errorf("option %d is not key=value", n)
			}
			options[w[0].text()] = w[2].text()
		}
	}
	return words[0].text(), options, nil
}

// A jaasToken is one of = ; { } or a word, which begins with a quote so that it is none of them.
type jaasToken string

func (t jaasToken) text() string { return strings.TrimPrefix(string(t), `"`) }

func jaasTokens(s string) (all []jaasToken, err error) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c <= ' ':
			i++
		case strings.IndexByte("=;{}", c) >= 0:
			all = append(all, jaasToken(c))
			i++
		case strings.HasPrefix(s[i:], "//"):
			end := strings.IndexAny(s[i:], "\r\n")
			if end < 0 {
				return all, nil
			}
			i += end
		case strings.HasPrefix(s[i:], "/*"):
			end := strings.Index(s[i+2:], "*/")
			if end < 0 {
				return nil, errors.New("a comment is not closed")
			}
			i += 2 + end + 2
		case c == '"' || c == '\'':
			word, n, closed := jaasQuoted(s[i+1:], c)
			if !closed {
				return nil, errors.New("a quote is not closed")
			}
			all = append(all, jaasToken(`"`+word))
			i += 1 + n
		default:
			begin := i
			for i < len(s) && s[i] > ' ' && !strings.ContainsRune(`=;{}"'`, rune(s[i])) {
				i++
			}
			all = append(all, jaasToken(`"`+s[begin:i]))
		}
	}
	return all, nil
}

// jaasQuoted reads a word up to its quote, and returns the number of bytes read.
func jaasQuoted(s string, quote byte) (word string, n int, closed bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), i + 1, true
		case c == '\n' || c == '\r': // Java ends the word there
			return "", i, false
		case c != '\\' || i+1 == len(s):
			b.WriteByte(c)
		case s[i+1] >= '0' && s[i+1] <= '7': // at most three octal digits, up to \377
			value, digits := 0, 0
			for digits < 3 && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '7' && value*8+int(s[i+1]-'0') <= 255 {
				value = value*8 + int(s[i+1]-'0')
				i, digits = i+1, digits+1
			}
			b.WriteRune(rune(value))
		default:
			i++
			if at := strings.IndexByte("abfnrtv", s[i]); at >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[at])
			} else {
				b.WriteByte(s[i])
			}
		}
	}
	return "", len(s), false
}

// jaasOfFile reads the section KafkaClient of a file that KAFKA_OPTS names, as Java's clients and Kafka's scripts
// do where there is no sasl.jaas.config. Without such a file, module is empty.
func jaasOfFile() (source, module string, options map[string]string, err error) {
	var file string
	for _, word := range strings.Fields(os.Getenv("KAFKA_OPTS")) {
		if path, ok := strings.CutPrefix(word, "-Djava.security.auth.login.config="); ok {
			file = strings.Trim(path, `"'`)
		}
	}
	if file == "" {
		return "", "", nil, nil
	}
	source = "the JAAS file " + file + " of KAFKA_OPTS"
	data, err := place.ReadFile(file)
	if err != nil {
		return "", "", nil, fmt.Errorf("read %s: %w", source, err)
	}
	words, err := jaasTokens(string(place.TextOf(data)))
	if err != nil {
		return "", "", nil, fmt.Errorf("%s: %w", source, err)
	}
	begin := slices.Index(words, `"KafkaClient`)
	if begin < 0 || begin+1 == len(words) || words[begin+1] != "{" {
		return "", "", nil, fmt.Errorf("%s has no section KafkaClient", source)
	}
	words = words[begin+2:]
	end := slices.Index(words, "}")
	if end < 0 {
		return "", "", nil, fmt.Errorf("%s: the section KafkaClient is not closed", source)
	}
	source += ", section KafkaClient"
	if module, options, err = parseModules(words[:end]); err != nil {
		err = fmt.Errorf("%s: %w", source, err)
	}
	return source, module, options, err
}

// A loginModule is a class of Java's that logs in, with the options that are understood here. An option
// that ends with * is the beginning of a name.
type loginModule struct {
	mechanisms []string
	options    []string
}

var loginModules = map[string]loginModule{
	// user_NAME are the users of a broker.
	"PlainLoginModule": {[]string{MechPlain}, []string{"username", "password", "user_*"}},
	"ScramLoginModule": {[]string{MechScram256, MechScram512}, []string{"username", "password", "tokenauth"}},
	"OAuthBearerLoginModule": {[]string{MechOAuth}, []string{
		"clientId", "clientSecret", "scope", "extension_*", "unsecuredLoginStringClaim_*", "unsecuredLoginNumberClaim_*",
		"oauth.token.endpoint.uri", "oauth.client.id", "oauth.client.secret", "oauth.scope", "oauth.access.token", // Strimzi's names
	}},
	"IAMLoginModule": {[]string{MechAWS}, []string{"awsProfileName", "awsDebugCreds"}},
}

// callbackHandlers are the classes by which a client gets its identity, by their names without a package, which
// do here what they do in Java.
var callbackHandlers = []string{
	"OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler", "JaasClientOauthLoginCallbackHandler", "IAMClientCallbackHandler",
}

// checkIdentity refuses what would log in with another identity in Java than here: a login module, an option of
// it or a callback handler that is not understood. jaas is nil if there is none; source says where it is from.
func checkIdentity(source, mechanism, module string, jaas, props map[string]string) error {
	refuse := func(format string, values ...any) error {
		return refusedIdentity(mechanism, fmt.Errorf(format, values...))
	}
	for _, name := range []string{"sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class"} {
		if class := baseClass(props[name]); class != "" && !slices.Contains(callbackHandlers, class) {
			return refuse("%s: the class %s is not known, and decides who logs in", name, class)
		}
	}
	if jaas == nil {
		return nil
	}
	refuseText := func(format string, values ...any) error {
		return refuse("%s: %s", source, fmt.Sprintf(format, values...))
	}
	known, ok := loginModules[baseClass(module)]
	if !ok && !strings.HasSuffix(module, "LoginModule") {
		return refuseText("its first word is no login module") // it may be a password
	}
	if !ok {
		return refuseText("the login module %s is not known", baseClass(module))
	}
	if !slices.Contains(known.mechanisms, mechanism) {
		return refuseText("the login module %s is not for %s", baseClass(module), mechanism)
	}
	for _, name := range slices.Sorted(maps.Keys(jaas)) {
		if !matchesAny(known.options, name) {
			return refuseText("the option %s of %s is not known", name, baseClass(module))
		}
	}
	return nil
}

// baseClass is a class's name without its package.
func baseClass(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// passiveSecurity are settings of TLS and logins that do not decide who logs in or which broker is trusted: Presets
// warns that they have no meaning here. One that ends with * is the beginning of a name.
var passiveSecurity = []string{
	"ssl.protocol", "ssl.enabled.protocols", "ssl.provider", "ssl.cipher.suites", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm",
	"ssl.secure.random.implementation", "sasl.login.refresh.*", "sasl.login.retry.*", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
	"sasl.kerberos.*", "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.*", "sasl.oauthbearer.jwks.*",
	"sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
}

// checkSecurity refuses properties of TLS and logins that are not known, where they have an effect in Java.
func checkSecurity(useTLS, useSASL bool, props map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if PropertyKnown(name) || matchesAny(passiveSecurity, name) {
			continue
		}
		if useTLS && strings.HasPrefix(name, "ssl.") || useSASL && strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "security.") {
			return &protocol.Error{
				Doing: "read the client's properties", Err: fmt.Errorf("the security setting %s is not known here", name),
				Hint: "leave it out, if the connection is as safe and the login the same without it",
			}
		}
	}
	return nil
}

// matchesAny reports whether a name is in a list, or begins like an entry of the list that ends with *.
func matchesAny(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		begin, open := strings.CutSuffix(entry, "*")
		return name == entry || open && strings.HasPrefix(name, begin)
	})
}

// refusedIdentity is the error of a login that would be another one than Java's.
func refusedIdentity(mechanism string, err error) error {
	return &protocol.Error{
		Doing: "log in by " + mechanism, Err: err,
		Hint: "Carronade logs in only as the file says: leave it out, and give --user and --password env:NAME or file:PATH",
	}
}
