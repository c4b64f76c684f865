package secret

import (
	"regexp"
	"slices"
	"strings"
)

// A kind is that of a node.
type kind int

const (
	scalar kind = iota
	table       // settings by their names
	list
)

// A node is a value in a file: what the parsers of all grammars make.
type node struct {
	kind     kind
	name     string // of the setting, without quotes and escapes; "" in a list
	start    int    // in the file: where the setting begins, with its name
	from, to int    // the value
	text     string // a scalar: what it says
	below    []node
	isName   bool // the name of another node, as a value
	isWords  bool // from its start, all is one text, such as a command line or an address
	// block: it is written on lines of its own, and each of them is hidden.
	block bool
	// write writes another text in the place of a scalar's; nil: unchanged.
	write func(string) string
}

// A tree masks what a parser found in a file.
type tree struct {
	file    string
	depth   int // of files within values of files
	edits   edits
	secrets []span // the blocks below secrets' names
}

func (t *tree) replace(from, to int, with string) {
	if t.file[from:to] != with {
		t.edits.replace(from, to, with)
	}
}

var (
	// Names of settings whose value is the name of another setting, and of those
	// with its value: an environment variable in a container's description.
	naming = regexp.MustCompile(`(?i)^(?:[\w.]*-)?(?:name|key|id|variable|property|option|param|setting)$`)
	valued = regexp.MustCompile(`(?i)^(?:[\w.]*-)?(?:value|values|val|default|content|text|data)$`)
	// Names below which there are settings of all kinds.
	holdsMore = regexp.MustCompile(`(?i)(?:creds|credentials?|authorization|cookie|jaas)$`)
)

// beside are names next to a secret whose values are not secret.
var beside = []string{
	"user", "username", "user_name", "login", "name", "type", "kind", "realm", "scope", "scopes", "mechanism", "method", "url", "uri", "host", "hosts", "hostname", "port", "enabled", "provider", "algorithm", "profile", "region", "role", "roles", "principal", "required", "backend", "class", "expires", "ttl",
}

// mask masks a value that has no secret's name.
func (t *tree) mask(n node) {
	switch n.kind {
	case table:
		t.table(n.below)
	case list:
		t.list(n.below)
	default:
		shown := hideWithin(n.text, t.depth)
		if n.isWords {
			shown = hideWithin(t.file[n.start:n.from]+shown, t.depth)
			n.from, n.text = n.start, t.file[n.start:n.to]
		}
		t.show(n, shown)
	}
}

// show writes a text in the place of a scalar's.
func (t *tree) show(n node, text string) {
	switch {
	case text == n.text:
	case n.write != nil:
		t.replace(n.from, n.to, n.write(text))
	default:
		t.replace(n.from, n.to, text)
	}
}

// isNaming reports whether a value is the name of a secret, whose value is beside it.
func isNaming(n node) bool {
	return n.kind == scalar && naming.MatchString(n.name) && isLikelyName(strings.TrimSpace(n.text))
}

// table masks the settings of one place.
func (t *tree) table(settings []node) {
	pair := slices.ContainsFunc(settings, isNaming)
	for _, n := range settings {
		switch {
		case isLikelyName(n.name), pair && valued.MatchString(n.name):
			t.secret(n)
		case n.kind == scalar && Is(n.name, n.text), n.kind == list && isAuth(n.name) && isLoginList(n.below):
			t.hide(n)
		default:
			t.mask(n)
		}
	}
}

// isLoginList reports whether a list is a name and a password, or has a login as an item.
// Others are methods of logging in.
func isLoginList(items []node) bool {
	isPair := len(items) == 2
	for _, n := range items {
		if n.kind == scalar && isLogin(strings.TrimSpace(n.text)) {
			return true
		}
		isPair = isPair && n.kind == scalar && !isMethod(n.text)
	}
	return isPair
}

// list masks a list, which may be the arguments of a program.
func (t *tree) list(items []node) {
	masked, args := make([]string, len(items)), make([]string, len(items))
	for i, n := range items {
		if n.kind == scalar {
			masked[i] = hideWithin(n.text, t.depth)
			args[i] = strings.TrimSpace(masked[i])
		}
	}
	shown := new(finder).arguments(args)
	for i, n := range items {
		switch {
		case n.kind != scalar:
			t.mask(n)
		case shown[i] == args[i]:
			t.show(n, masked[i])
		case shown[i] == Hidden || n.write == nil && n.block:
			t.hide(n)
		default:
			t.show(n, shown[i])
		}
	}
}

// secret masks the value of a secret's name.
func (t *tree) secret(n node) {
	single := isSingle(n.name)
	switch {
	case n.kind == scalar && (strings.Contains(n.text, "LoginModule") || isMode(n.name, n.text)):
		t.mask(n)
	case single && n.kind == table && isAboutUse(n):
	case n.kind == scalar || !n.block:
		t.hide(n)
	default:
		t.secrets = append(t.secrets, span{n.start, n.to})
		for _, b := range n.below {
			key := strings.ToLower(b.name)
			switch {
			case b.isName:
			case b.kind == scalar && IsReference(b.text):
			case n.kind == table && single && isAboutUse(b):
			case n.kind == table && holdsMore.MatchString(n.name) && (slices.Contains(beside, key) || isLikelyName(key)):
				t.table([]node{b})
			case n.kind == table && holdsMore.MatchString(n.name):
				t.hide(b)
			default:
				t.hideLines(b.start, b.to)
			}
		}
	}
}

// hide masks a value as a whole.
func (t *tree) hide(n node) {
	if n.kind == scalar && !isPlain(strings.TrimSpace(n.text)) && n.from+len(n.text) >= n.to {
		return
	}
	if n.block {
		t.hideLines(n.from, n.to)
		return
	}
	t.replace(n.from, n.to, Hidden)
}

// item is what a line has before an item of a list, or before its setting.
var item = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*`)

// hideLines masks the lines of file[from:to], each on its own.
func (t *tree) hideLines(from, to int) {
	for at := from; at < to; {
		end := min(at+lineLength(t.file[at:]), to)
		line := strings.TrimRight(t.file[at:end], " \t\r")
		if n := len(item.FindString(line)); n < len(line) {
			t.replace(at+n, at+len(line), Hidden)
		}
		at = end + 1
	}
}

// continuation is the end of a line that the next one continues.
var continuation = regexp.MustCompile(`\\\r?\n`)

// hideWithin masks a value, which may be the text of another file.
func hideWithin(text string, depth int) string {
	var f finder
	text = f.address(text)
	body := strings.TrimSpace(continuation.ReplaceAllString(text, ""))
	if depth < maxDepth && body != "" && (strings.Contains(body, "\n") || strings.IndexByte("{[<", body[0]) >= 0) {
		return hideDocument(text, depth+1)
	}
	return f.likely(text)
}
