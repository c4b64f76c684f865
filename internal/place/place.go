// Package place knows the places that users name: stores, files, and references of secrets. It
// reads each text once and returns a kind and a value. What checks a place and what uses it take
// this value, so that they cannot read a text in two ways. It also opens the files that users
// name, in a process of a server's job only those in a few folders. It knows neither the rules of
// a server nor what is in a store.
package place

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"carronade/internal/advice"
)

// A Kind is what a text names.
type Kind uint8

// The kinds of places.
const (
	Default  Kind = iota // a store that was not named
	File                 // a file or a folder
	Stream               // -, the standard input or output
	Cluster              // a store in Elasticsearch or OpenSearch
	Variable             // a variable of the environment
	Text                 // the value itself, which is at no other place
)

// A Place is where something is.
type Place struct {
	Kind  Kind
	Value string // the path of a file, the name of a variable, or the text itself
	// Address is that of a cluster; nil for other kinds.
	Address *Address
}

// Files returns the files that a place names: itself, or those of a cluster's secrets and
// authorities.
func (p Place) Files() []string {
	switch {
	case p.Kind == File:
		return []string{p.Value}
	case p.Address == nil:
		return nil
	}
	paths := append(p.Address.Password.Files(), p.Address.APIKey.Files()...)
	if p.Address.CA != "" {
		paths = append(paths, p.Address.CA)
	}
	return paths
}

// The schemes of stores.
const (
	sqliteScheme     = "sqlite"
	clusterScheme    = "elasticsearch"
	clusterTLSScheme = "elasticsearch+https"
)

// StoreSchemes are the schemes of stores. A store without a scheme is a file.
var StoreSchemes = []string{sqliteScheme, clusterScheme, clusterTLSScheme}

// beginning is the scheme at the beginning of an address. One letter is a drive of Windows.
var beginning = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// noStore is what users give who want no store. It is not taken for the name of a file.
const noStore = "none"

// Store reads the place of a store: "" for the default one, a file, or SCHEME://.... The error is
// an *advice.Error.
func Store(text string) (Place, error) {
	switch text {
	case "":
		return Place{}, nil
	case noStore:
		return Place{}, &advice.Error{Err: errors.New("--store: none is not the place of a store"), Hint: "give a file or an address, or to a run --no-store; ./none is a file of that name"}
	}
	found := beginning.FindStringSubmatch(text)
	if found == nil {
		return Place{Kind: File, Value: text}, nil
	}
	scheme := found[1]
	rest, ok := strings.CutPrefix(text[len(found[0]):], "//")
	way := "give a file, or an address that begins with " + strings.Join(StoreSchemes, "://, ") + "://; ./" + scheme + ":... is a file"
	switch {
	case scheme != sqliteScheme && scheme != clusterScheme && scheme != clusterTLSScheme:
		return Place{}, &advice.Error{Err: fmt.Errorf("--store: unknown scheme %s: of a store", scheme), Hint: advice.DidYouMean(scheme, StoreSchemes, "%s://", way)}
	case !ok:
		return Place{}, &advice.Error{Err: fmt.Errorf("--store: after %s: there is no //", scheme), Hint: way}
	case scheme != sqliteScheme:
		address, err := parseAddress(text)
		return Place{Kind: Cluster, Value: text, Address: address}, err
	case rest == "":
		return Place{}, &advice.Error{Err: errors.New("--store: there is no path after sqlite://"), Hint: "such as sqlite:///srv/carronade/reports.db"}
	}
	return Place{Kind: File, Value: rest}, nil
}

// IsAddress reports whether a text is an address, SCHEME://..., and so not the name of a file.
func IsAddress(text string) bool {
	scheme := beginning.FindString(text)
	return scheme != "" && strings.HasPrefix(text[len(scheme):], "//")
}

// Path reads the name of a file or a folder; - is the standard input or output. An address is an
// error, an *advice.Error.
func Path(text string) (Place, error) {
	switch {
	case text == "-":
		return Place{Kind: Stream}, nil
	case IsAddress(text):
		scheme, _, _ := strings.Cut(text, ":")
		return Place{}, &advice.Error{Err: fmt.Errorf("an address, %s://, and not a file", scheme), Hint: "give a file; ./" + scheme + ":... is one of that name"}
	}
	return Place{Kind: File, Value: text}, nil
}

// Reference reads the reference of a secret: env:NAME, file:PATH, or the secret itself.
func Reference(text string) Place {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		return Place{Kind: Variable, Value: name}
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		return Place{Kind: File, Value: path}
	}
	return Place{Kind: Text, Value: text}
}
