package secret

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
)

// An element is a part of an XML file.
type element struct {
	node       // its name and contents; below: its texts
	attributes []node
	inside     []element
}

var (
	attribute = regexp.MustCompile(`([\w:.\-]+)\s*=\s*("[^"]*"|'[^']*')`)
	// Names of elements with the value of the element before them, as in lists of
	// properties.
	valuedBehind = regexp.MustCompile(`(?i)(?:value|string|text|data|content|default)$`)
)

// readXML reads the elements of a text, and its comments.
func readXML(text string) (root element, comments []span, err error) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n\ufeff"), "<") {
		return root, nil, errGrammar
	}
	d := xml.NewDecoder(strings.NewReader(strings.Map(allowed, text)))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 already
	open := []element{{}}
	for at := 0; ; {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) && len(open) == 1 {
			return open[0], comments, nil
		}
		if err != nil {
			return root, nil, err
		}
		now := span{at, int(d.InputOffset())}
		at = now.to
		last := &open[len(open)-1]
		switch v := token.(type) {
		case xml.StartElement:
			if len(open) > mostNested {
				return root, nil, errGrammar
			}
			e := node{name: v.Name.Local, start: now.from, from: now.to}
			open = append(open, element{node: e, attributes: readAttributes(text, now, v.Attr)})
		case xml.EndElement:
			if len(open) < 2 || last.name != v.Name.Local {
				return root, nil, errGrammar
			}
			last.to = now.from
			parent := &open[len(open)-2]
			parent.kind, parent.inside = table, append(parent.inside, *last)
			open = open[:len(open)-1]
		case xml.CharData:
			last.text += string(v)
			write := escapeXML
			if strings.Contains(text[now.from:now.to], "<![CDATA[") {
				write = func(s string) string { return "<![CDATA[" + strings.ReplaceAll(s, "]]>", "]]]]><![CDATA[>") + "]]>" }
			}
			last.below = append(last.below, node{from: now.from, to: now.to, text: string(v), write: write})
		case xml.Comment, xml.Directive, xml.ProcInst:
			comments = append(comments, now)
		}
	}
}

// allowed replaces a character that XML does not allow by one of the same length: a file
// with one is still read.
func allowed(r rune) rune {
	switch {
	case r < ' ' && r != '\t' && r != '\n' && r != '\r':
		return ' '
	case r == '\ufffe' || r == '\uffff':
		return '\ufffd'
	}
	return r
}

// readAttributes finds the attributes of a tag: the decoder says what they are, not where.
func readAttributes(text string, tag span, attrs []xml.Attr) (out []node) {
	at := attribute.FindAllStringSubmatchIndex(text[tag.from:tag.to], -1)
	for i, a := range attrs {
		if i >= len(at) {
			break
		}
		out = append(out, node{name: a.Name.Local, from: tag.from + at[i][4] + 1, to: tag.from + at[i][5] - 1, text: a.Value, write: escapeXML})
	}
	return out
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

func escapeXML(s string) string { return escaped.Replace(s) }

// xml masks an element and what is in it.
func (t *tree) xml(e element) {
	secret := isLikelyName(e.name) || slices.ContainsFunc(e.attributes, isNaming)
	for _, a := range e.attributes {
		if secret && valued.MatchString(a.name) {
			t.hide(a)
		} else {
			t.table([]node{a})
		}
	}
	if secret && strings.TrimSpace(t.file[e.from:e.to]) != "" {
		t.hide(e.node)
		return
	}
	for _, n := range e.below {
		t.mask(n)
	}
	for i, one := range e.inside {
		before, after := i > 0 && isNaming(e.inside[i-1].node), i+1 < len(e.inside) && isNaming(e.inside[i+1].node)
		if before && valuedBehind.MatchString(one.name) || after && valued.MatchString(one.name) {
			t.hide(one.node)
		} else {
			t.xml(one)
		}
	}
}
