package payload

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

// mongooseSeed is the default seed of mongoose's data.
const mongooseSeed = "7a42d9c483244167"

func mongooseRing(t testing.TB, seed string, size int) []byte {
	t.Helper()
	words := assert.Value(ParseTemplate("${int64:xorShift(this.last())}%{"+seedOf(t, seed)+"}", TemplateOptions{}))(t)
	first := assert.Value(parseSeed(seed))(t)
	b := wordBytes(first)
	for n := uint64(0); len(b) < size; n++ {
		b = append(b, wordBytes(uint64(words.Integer(n)))...)
	}
	return b[:size]
}

// seedOf is a seed as a decimal number.
func seedOf(t testing.TB, seed string) string {
	t.Helper()
	n := assert.Value(parseSeed(seed))(t)
	return fmt.Sprint(int64(n))
}

// wordBytes are the bytes of a word, the most significant one first.
func wordBytes(w uint64) []byte {
	b, err := hex.DecodeString(fmt.Sprintf("%016x", w))
	if err != nil {
		panic(err)
	}
	return b
}

// TestRingBytes: the ring of a seed has the bytes of mongoose's.
func TestRingBytes(t *testing.T) {
	r := newRing(0x7a42d9c483244167, 4<<20)
	got, want := hex.EncodeToString(r.data[:40]), "7a42d9c4832441676ff96986de7f7a2ead08c0f095e9c0d382bda141074279ca0349d9ec9e4cde5b"
	assert.True(t, got == want, "it begins with %s, want %s", got, want)
	got, want = hex.EncodeToString(r.data[4<<20-8:]), "101892152b7275f3"
	assert.True(t, got == want, "it ends in %s, want %s", got, want)
	for _, size := range []int{1, 7, 8, 9, 100, 4096} { // also with a part of a word
		for _, seed := range []string{mongooseSeed, "1", "ffffffffffffffff", "-5"} {
			n := assert.Value(parseSeed(seed))(t)
			assert.True(t, bytes.Equal(newRing(n, size).data, mongooseRing(t, seed, size)),
				"the ring of %s with %d bytes differs", seed, size)
		}
	}
}

// TestRingValues: the value of an item is the piece at its number, also across the end, and
// longer than the ring; a check knows it.
func TestRingValues(t *testing.T) {
	ring := mongooseRing(t, mongooseSeed, 100)
	at := func(offset uint64, size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = ring[(offset+uint64(i))%100]
		}
		return b
	}
	g := assert.Value(New(Spec{Size: "1-350", Payload: "ring(100,${this.last() + 37}%{5},7a42d9c483244167)", Key: "number(36,${this.last() + 37}%{5},item-)"}))(t)
	c := assert.Value(ParseCheck("ring(100,names(36,item-),7a42d9c483244167)"))(t)
	for n := range uint64(200) {
		value, key := g.AppendValue(nil, n), g.AppendKey(nil, n)
		offset := 5 + 37*(n+1)
		want := at(offset, g.Size(n))
		assert.Must(t, bytes.Equal(value, want), "event %d is %x, want %x", n, value, want)
		if want := fmt.Sprintf("item-%s", strings.ToLower(base36(offset))); string(key) != want {
			t.Fatalf("the key of event %d is %s, want %s", n, key, want)
		}
		assert.True(t, len(key) <= g.MaxKeySize(), "a key of %d bytes, more than %d", len(key), g.MaxKeySize())
		assert.True(t, c.Value(0, key, value) && !c.Value(0, g.AppendKey(nil, n+1), value), "event %d: the check confuses keys", n)
	}
}

func base36(n uint64) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	if n < 36 {
		return digits[n : n+1]
	}
	return base36(n/36) + digits[n%36:n%36+1]
}

// TestRingFile: a ring of a file has its first bytes, or repeats them.
func TestRingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a,b(c).txt")
	assert.OK(t, os.WriteFile(path, []byte("abcdefg"), 0o600))
	for _, tt := range []struct {
		size int
		want string
	}{{3, "abc"}, {7, "abcdefg"}, {18, "abcdefgabcdefgabcd"}} {
		g := assert.Value(New(Spec{Size: "3", Payload: fmt.Sprintf("ring(%d,${this.last() + 1}%%{-1},file:%s)", tt.size, path)}))(t)
		twice := tt.want + tt.want
		for n := range uint64(tt.size) {
			assert.Equal(t, string(g.AppendValue(nil, n)), twice[n:n+3], "ring of %d: value %d", tt.size, n)
		}
	}
}

// TestRingErrors: a ring that is not one is refused, with its forms.
func TestRingErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	assert.OK(t, os.WriteFile(empty, nil, 0o600))
	for text, want := range map[string]string{
		"ring":                                 "is not a kind of payload|a size and a seed",
		"ring(4MiB)":                           "a size and a seed",
		"ring(0,ff)":                           "from 1 byte to 1 GiB",
		"ring(2GiB,ff)":                        "from 1 byte to 1 GiB",
		"ring(4MiB,xyz)":                       "is not a seed",
		"ring(4MiB,11112222333344445)":         "is not a seed",
		"ring(4MiB,${rnd.nextInt()})":          "after the expression",
		"ring(4MiB,${pi},ff)":                  "an integer, and nothing else",
		"ring(4MiB,a${rnd.nextInt()},ff)":      "an integer, and nothing else",
		"ring(4MiB,${time:nanos()},ff)":        "current time",
		"ring(4MiB,names(36),ff)":              "only possible where values are checked",
		"ring(4MiB,file:" + empty + ")":        "is empty",
		"ring(4MiB,file:" + empty + ".absent)": "no such file",
	} {
		_, err := New(Spec{Payload: text})
		ok := false
		for w := range strings.SplitSeq(want, "|") {
			ok = ok || err != nil && strings.Contains(err.Error(), w)
		}
		assert.True(t, ok, "%s: %v, want %s", text, err, want)
	}
	for text, want := range map[string]string{
		"random":                         "is not a ring",
		"ring(4MiB,${rnd.nextInt()},ff)": "an expression does not say",
		"ring(4MiB,names(1),ff)":         "is not a radix",
		"ring(4MiB,other(1),ff)":         "neither names",
		"ring(4MiB,list(/absent),ff)":    "no such file",
	} {
		_, err := ParseCheck(text)
		assert.ErrorHas(t, err, want, "%s", text)
	}
}

// TestRingVaries: with an offset for each event, events are worth making when they are sent.
func TestRingVaries(t *testing.T) {
	for text, want := range map[string]bool{
		"ring(4MiB,ff)": false, "ring(4MiB,${this.last() + 1}%{0},ff)": true, "ring(4MiB,${7},ff)": false, "random": false,
	} {
		assert.Equal(t, (Spec{Payload: text}).Varies(), want, "whether %s varies", text)
	}
	assert.True(t, (Spec{Key: "number(10,${this.last() + 1}%{0})"}).Varies(), "keys with a number do not vary")
}

// TestCheckFindsAnyChange: without keys and lists, a value is one of the ring's pieces, and no
// byte of it can change unnoticed, if it is long enough to have one place.
func TestCheckFindsAnyChange(t *testing.T) {
	c := assert.Value(ParseCheck("ring(64KiB,7a42d9c483244167)"))(t)
	ring := mongooseRing(t, mongooseSeed, 64<<10)
	rapid.Check(t, func(t *rapid.T) {
		offset, size := rapid.IntRange(0, 64<<10-1).Draw(t, "offset"), rapid.IntRange(0, 1000).Draw(t, "size")
		value := append(bytes.Clone(ring[offset:]), ring...)[:size]
		assert.Must(t, c.Value(0, nil, value) && c.Value(0, []byte("any"), value), "%d bytes at %d are not found", size, offset)
		if size >= 8 {
			i := rapid.IntRange(0, size-1).Draw(t, "changed")
			value[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			assert.Must(t, !c.Value(0, nil, value), "byte %d of %d bytes at %d was changed, and it was not noticed", i, size, offset)
		}
	})
}

// TestCheckList: of a list, each value has its own offset and size.
func TestCheckList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items,1.csv")
	assert.OK(t, os.WriteFile(path, []byte("t/a,b,f,10,0/0\nt/b,ffff,3,0/0\nt/c,-7fffffffffffffff,3,0/0\n"), 0o600))
	c, err := ParseCheck("ring(100,list(" + path + "),7a42d9c483244167)")
	assert.Must(t, err == nil && c.Items() == 3, "%v %v", err, c)
	ring := mongooseRing(t, mongooseSeed, 100)
	for _, tt := range []struct {
		item  uint64
		value []byte
		want  bool
	}{
		{0, ring[15:25], true},
		{0, ring[15:24], false},
		{0, ring[16:26], false},
		{1, ring[35:38], true},
		{1, ring[15:25], false},
		{2, ring[1:4], true},
		{3, ring[15:25], false},
	} {
		assert.Equal(t, c.Value(tt.item, nil, tt.value), tt.want, "item %d is %x", tt.item, tt.value)
	}
	for text, want := range map[string]string{
		"t/a,f,10\n":          "f:1: \"t/a,f,10\" is not PATH,OFFSET,SIZE",
		"t/a,f,10,0/0\n,,,\n": "f:2: \"\" is not a hexadecimal offset",
		"t/a,f,-1,0/0\n":      "f:1: \"-1\" is not a size",
		"t/a,f,1,1/28\n":      "f:1: the item was updated (1/28)",
	} {
		_, err := parseCheckedItems(strings.NewReader(text), "f")
		assert.ErrorHas(t, err, want, "%q", text)
	}
}

// FuzzCheckList: whatever a list has, reading it ends with items or with an error.
func FuzzCheckList(f *testing.F) {
	f.Add("t/a,f,10,0/0\n")
	f.Add("a,b,c,-8000000000000000,9223372036854775807,0/0\n")
	ring := newRing(1, 100)
	f.Fuzz(func(t *testing.T, text string) {
		items, err := parseCheckedItems(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		c := &Check{ring: ring, items: items}
		for i := range items {
			c.Value(uint64(i), nil, ring.data)
		}
	})
}

func TestHeadersOfEvents(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers []string
		vary    bool
		want    []string // of event 7, as name=value
	}{
		{"none", nil, false, nil},
		{"constant", []string{"a=b", "c=d=e", "empty=", "price=$5 {x}"}, false, []string{"a=b", "c=d=e", "empty=", "price=$5 {x}"}},
		{"escaped", []string{"a=$${b}"}, false, []string{"a=${b}"}},
		{"constant expressions", []string{"a-${1 + 1}=%{2 * 3}"}, false, []string{"a-2=6"}},
		{"in names and values", []string{"n-${this.last() + 1}%{-1}=${1 == 1 ? 'x=y' : ''}", "a=b"}, true, []string{"n-7=x=y", "a=b"}},
		{"an = in an expression of a name", []string{"${1 == 1}-${rnd.nextInt(1)}=v"}, true, []string{"true-0=v"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := generator(t, Spec{Seed: 1, Headers: tt.headers})
			assert.True(t, g.HeadersVary() == tt.vary && g.NumHeaders() == len(tt.want) && (Spec{Headers: tt.headers}).Varies() == tt.vary,
				"vary: %t, %d headers", g.HeadersVary(), g.NumHeaders())
			for i, want := range tt.want {
				out, name := g.AppendHeader([]byte("before"), i, 7)
				out = out[len("before"):]
				assert.Equal(t, fmt.Sprintf("%s=%s", out[:name], out[name:]), want)
				if !tt.vary && (g.Headers()[i].Key+"="+string(g.Headers()[i].Value) != want || g.Headers()[i].Value == nil) {
					t.Errorf("got %q of every event, want %s", g.Headers()[i], want)
				}
			}
			assert.True(t, !tt.vary || g.Headers() == nil, "headers that vary are said to be those of every event")
		})
	}
}

// Headers and keys of an event depend on the seed and its number; each header draws numbers of its own.
func TestExpressionsAreReproducible(t *testing.T) {
	const draw = "${rnd.nextLong()}"
	s := Spec{Seed: 1, Key: draw, Headers: []string{draw + "=" + draw, "a=" + draw}}
	a, b := generator(t, s), generator(t, s)
	s.Seed = 2
	other := generator(t, s)
	seen := map[string]bool{}
	for n := range uint64(100) {
		for i := -1; i < 2; i++ {
			made := func(g *Generator) []string {
				if i < 0 {
					return []string{string(g.AppendKey(nil, n))}
				}
				out, name := g.AppendHeader(nil, i, n)
				return []string{string(out[:name]), string(out[name:])}
			}
			x, y, z := made(a), made(b), made(other)
			for j := range x {
				if x[j] == "a" {
					continue
				}
				if x[j] != y[j] || x[j] == z[j] || seen[x[j]] {
					t.Errorf("event %d, header %d: %q, again %q, of another seed %q", n, i, x[j], y[j], z[j])
				}
				seen[x[j]] = true
			}
		}
	}
	assert.Equal(t, len(seen), 400, "texts")
}

func TestKeyExpressions(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Key: "user-${rnd.nextInt(1000)}"})
	assert.True(t, g.HasKey() && (Spec{Key: "user-${rnd.nextInt(1000)}"}).Varies() && g.MaxKeySize() >= len("user-999"),
		"has key %t, at most %d bytes", g.HasKey(), g.MaxKeySize())
	seen := map[string]bool{}
	for n := range uint64(1000) {
		key := string(g.AppendKey(nil, n))
		assert.Must(t, strings.HasPrefix(key, "user-") && len(key) <= g.MaxKeySize(), "got %s", key)
		seen[key] = true
	}
	assert.True(t, len(seen) >= 500, "only %d keys", len(seen))
	t.Setenv("CARRONADE_TEST_KEY", "a")
	if env := generator(t, Spec{Key: `%{env:get("CARRONADE_TEST_KEY")}-${rnd.nextInt(9)}`}); !env.KeyUsesEnv() || g.KeyUsesEnv() || generator(t, Spec{Key: "seq"}).KeyUsesEnv() {
		t.Errorf("keys use the environment: %t and %t", env.KeyUsesEnv(), g.KeyUsesEnv())
	}
	got := g.Describe()
	assert.True(t, strings.Contains(got, "key user-${rnd.nextInt(1000)}"), "got %q", got)
	assert.True(t, !(Spec{Key: "%{rnd.nextInt(1000)}"}).Varies() && !(Spec{Key: "${foo}"}).Varies() &&
		!(Spec{Key: "seq", Headers: []string{"a=b"}}).Varies(), "a constant, an error or a distribution of keys varies")
}

func TestExpressionErrors(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Key: "user-${foo}"}, `key "user-${foo}": at 8: foo is not known`},
		{Spec{Key: "${time:nanos()}"}, "at 3: this is the current time, but this text must be the same whenever it is needed"},
		{Spec{Key: "#{1}"}, "at 1: #{...} changes with time"},
		{Spec{Headers: []string{"a${=1"}}, "no name and value"},
		{Spec{Headers: []string{"a-${foo}=1"}}, `header "a-${foo}=1": at 5: foo`},
		{Spec{Headers: []string{"name=a-${foo}"}}, `header "name=a-${foo}": at 10: foo`},
		{Spec{Headers: []string{"a=${"}}, "at 3: it has no closing }; write $${ for a literal ${"},
		{Spec{Headers: []string{"a=${time:nanos()}"}, Pooled: true}, "events are made before the run here"},
	} {
		_, err := New(tt.spec)
		assert.ErrorHas(t, err, tt.want, "%+v", tt.spec)
	}
	assert.Value(New(Spec{Headers: []string{"a=${time:nanos()}"}}))(t, "a header as it is sent")
}
