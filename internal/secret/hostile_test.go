package secret

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const canary = "kestrel-9271"

// A hidden text has a secret, and parts that must stay readable.
type hidden struct {
	name, text string
	kept       []string
}

func testHidden(t *testing.T, tests []hidden, secrets ...string) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := new(Mask).Text(tt.text)
			for _, one := range append(secrets, canary) {
				assert.True(t, !strings.Contains(got, one), "a secret is left: got\n%s\nof\n%s", got, tt.text)
			}
			for _, kept := range tt.kept {
				assert.True(t, strings.Contains(got, kept), "got\n%s\nof\n%s\nwant in it %q", got, tt.text, kept)
			}
		})
	}
}

// Files and lines whose secret is hard to find.
func TestHostile(t *testing.T) {
	const s = canary
	inner, _ := json.Marshal(`{"password":"` + s + `","port":1}`)
	twice, _ := json.Marshal(`{"a":` + string(inner) + `}`)
	login := base64.StdEncoding.EncodeToString([]byte("u:" + s))
	testHidden(t, []hidden{
		{"YAML, a literal block with a header", "password: |2-\n    " + s + "\nport: 1\n", []string{"port: 1"}},
		{"YAML, a folded block with a comment", "password: > # it\n  " + s + "\n\n  more " + s + "\nport: 1\n", []string{"port: 1"}},
		{"YAML, a block in a list in a map", "a:\n- tokens:\n  - |\n    " + s + "\n  port: 1\n", []string{"port: 1"}},
		{"YAML, properties in a block", "data:\n  server.properties: |\n    port=1\n    ssl.key.password=" + s + "\n    x=2\n  other: 3\n", []string{"    port=1\n", "    x=2\n  other: 3\n"}},
		{"YAML, YAML in a block", "data:\n  a.yml: |\n    x:\n      password: " + s + "\n    y: 1\n", []string{"y: 1\n"}},
		{"YAML, JSON in a block", "data:\n  a.json: |\n    {\"password\": \"" + s + "\", \"port\": 1}\nx: 1\n", []string{"\"port\": 1}\nx: 1\n"}},
		{"YAML, an escaped name", "\"pass\\x77ord\": " + s + "\nport: 1\n", []string{"port: 1"}},
		{"YAML, a complex key", "? password\n: " + s + "\n", nil},
		{"YAML, an anchor and an alias", "a: &x\n  password: " + s + "\nb: *x\nport: 1\n", []string{"b: *x\nport: 1"}},
		{"YAML, a merge", "a: &x {password: " + s + "}\nb:\n  <<: *x\n  port: 1\n", []string{"port: 1"}},
		{"YAML, two documents", "port: 1\n---\npassword: " + s + "\n---\nport: 2\n", []string{"port: 1\n---\n", "port: 2\n"}},
		{"YAML, a template", "{{ if .x }}\npassword: " + s + "\ntoken: |\n  " + s + "\n{{ end }}\nport: 1\n", []string{"port: 1"}},
		{"YAML, a template below a name", "passwords:\n{{- range .x }}\n  a: " + s + "\n{{- end }}\nport: 1\n", []string{"port: 1"}},
		{"YAML, a template, a variable", "{{ x }}\nenv:\n- name: DB_PASSWORD\n  value: " + s + "\n- name: HEAP\n  value: 1g\n", []string{"value: 1g"}},
		{"YAML, a template, comments behind names", "{{ if .x }}\npassword: | # it\n  " + s + "\ntokens: # these\n- " + s + "\nport: 1\n{{ end }}\n", []string{"port: 1\n"}},
		{"YAML, a tab", "a:\n\tpassword: " + s + "\nport: 1\n", []string{"port: 1"}},
		{"YAML, an empty block", "password: |\nport: 1\ntoken: >\nx: 1\n", []string{"\nport: 1\n", "\nx: 1\n"}},
		{"YAML, a block with an error", "env:\n- name: DB_PASSWORD\n  value: |\n     a\n    " + s + "\nport: 1\n", []string{"port: 1\n"}},
		{"YAML, an old setting", "port: 1\n# password: " + s + "\n#   token: " + s + "\nx: 1\n", []string{"port: 1\n", "x: 1\n"}},
		{"YAML, a comment behind", "port: 1 # password: " + s + "\n", []string{"port: 1"}},
		{"YAML, a comment behind a secret", "password: abc # old\n# password: " + s + "\nport: 1\n", []string{"# password: ***\nport: 1\n"}},
		{"YAML, comments below one behind a secret", "a:\n  token: abc # old\n  # one\n  # token: " + s + "\n  # two\n  port: 1\n", []string{"  # one\n", "  # two\n  port: 1\n"}},
		{"YAML, a comment behind a secret's item", "tokens:\n- abc # old\n# password: " + s + "\nport: 1\n", []string{"port: 1\n"}},
		{"YAML, a comment behind a secret's name", "tokens: # old\n# password: " + s + "\n- abc\nport: 1\n", []string{"port: 1\n"}},
		{"YAML, a comment behind a block's head", "password: | # old\n  abc\n# password: " + s + "\nport: 1\n", []string{"port: 1\n"}},
		{"YAML, in quotes on lines", "password: 'a\n\n  " + s + "'\nport: 1\n", []string{"port: 1"}},
		{"YAML, Windows", "a:\r\n  password: \"" + s + "\"\r\n  port: 1\r\n", []string{"  port: 1\r\n"}},
		{"YAML, a script", "run: |\n  curl -u u:" + s + " http://h/\n  echo done\n", []string{"echo done"}},
		{"YAML, a command", "command: [\"sh\", \"-c\", \"srv --password " + s + " --port 1\"]\n", []string{"--port 1"}},
		{"YAML, cookies", "headers:\n  Cookie: a=" + s + "\n  Accept: x\n", []string{"Accept: x"}},
		{"YAML, a header in a list", "headers:\n- \"Authorization: Bearer " + s + "\"\n- \"Accept: x\"\n", []string{"Accept: x"}},
		{"JSON, in a text", `{"a":` + string(inner) + `,"n":1}`, []string{`\"port\":1`, `"n":1}`}},
		{"JSON, in a text in a text", `{"b":` + string(twice) + `,"n":1}`, []string{`port`, `"n":1}`}},
		{"JSON, an escaped name", `{"pass\u0077ord":"` + s + `","n":1}`, []string{`"n":1}`}},
		{"JSON, an escaped value", `{"url":"https:\/\/u:` + s + `@h\/x","n":1}`, []string{`"n":1}`}},
		{"JSON, lines", `{"n":1}` + "\n" + `{"token":"` + s + `"}` + "\n" + `{"n":2}` + "\n", []string{`{"n":1}`, `{"n":2}`}},
		{"JSON, with comments", "{\n  // \"password\": \"" + s + "\",\n  \"password\": \"" + s + "\",\n  \"port\": 1\n}\n", []string{"\"port\": 1"}},
		{"JSON, a comma too many", "{\"password\": \"" + s + "\", \"port\": 1,}\n", []string{"\"port\": 1"}},
		{"JSON, cut", "{\"port\": 1, \"passwords\": [\"a\", \"" + s, []string{"\"port\": 1"}},
		{"JSON, a login in base64", `{"auths":{"h":{"auth":"` + login + `"}},"n":1}`, []string{`"n":1}`}},
		{"JSON, a key on lines", `{"private_key":"-----BEGIN PRIVATE KEY-----\n` + s + `\n-----END PRIVATE KEY-----\n","n":1}`, []string{`"n":1}`}},
		{"JSON, properties in a text", `{"a":"port=1\nssl.key.password=` + s + `\nx=2","n":1}`, []string{`port=1\n`, `\nx=2`, `"n":1}`}},
		{"JSON, a login module", `{"sasl.jaas.config":"a.PlainLoginModule required username=\"u\" password=\"` + s + `\";","n":1}`, []string{`username=\"u\"`, `"n":1}`}},
		{"XML, attributes", `<a password='` + s + `' port="1"/>`, []string{`port="1"`}},
		{"XML, an attribute with a mark", `<a b=">" password="` + s + `" port="1"/>`, []string{`port="1"`}},
		{"XML, CDATA with elements", "<a><password><![CDATA[</x>" + s + "]]></password><port>1</port></a>", []string{"<port>1</port>"}},
		{"XML, properties in CDATA", "<a><![CDATA[port=1\nssl.key.password=" + s + "\n]]></a>", []string{"port=1"}},
		{"XML, entities", "<a><b>PlainLoginModule required password=&quot;" + s + "&quot;;</b><port>1</port></a>", []string{"<port>1</port>"}},
		{"XML, an address with entities", "<a url=\"http://u:&amp;" + s + "@h/\" n=\"1\"/>", []string{`n="1"`}},
		{"XML, a comment", "<a><!-- <password>" + s + "</password> --><port>1</port></a>", []string{"<port>1</port>"}},
		{"XML, a comment with a setting", "<a><!-- password=" + s + " --><port>1</port></a>", []string{"<port>1</port>"}},
		{"XML, not closed", "<a><password>" + s + "\n</password><port>1</port>\n", []string{"<port>1</port>"}},
		{"XML, a name in a value", `<bean><property name="user" value="u"/><property name="password"><value>` + s + `</value></property></bean>`, []string{`value="u"`}},
		{"XML, a character that is not allowed", "<a><name>x.token</name><value>\n{\x1a" + s + "</value></a>", []string{"x.token"}},
		{"a shell, quotes in quotes", `srv --password ''\'' ` + s + "' --port 1\n", []string{"--port 1"}},
		{"properties, escapes in a name", "ssl.key.pass\\u0077ord=" + s + "\nport=1\n", []string{"port=1"}},
		{"properties, an escaped blank in a name", "my\\ password=" + s + "\nport=1\n", []string{"port=1"}},
		{"properties, quotes and lines", "ssl.key.password=\"a\\\n    b\\\n    " + s + "\"\nport=1\n", []string{"port=1"}},
		{"properties, an old setting that goes on", "#ssl.key.password=a\\\n#  " + s + "\nport=1\n", []string{"port=1"}},
		{"properties, a comment with a mark", "! token: " + s + "\nport=1\n", []string{"port=1"}},
		{"properties, JSON in a value", "x={\"password\":\"" + s + "\",\"n\":1}\nport=1\n", []string{"\"n\":1}\nport=1"}},
		{"properties, a query", "url=http://h/?a=1&access_token=" + s + "&b=2\nport=1\n", []string{"b=2\nport=1"}},
		{"INI, blanks and a comment", "[db]\n  password   =   " + s + "   ; it\n  port = 1\n", []string{"port = 1"}},
		{"INI, a name with blanks", "[a]\ndb password = " + s + "\nport = 1\n", []string{"port = 1"}},
		{"environment, export and quotes", "export   API_KEY=\"a \\\" " + s + "\"\nexport PORT=1\n", []string{"export PORT=1"}},
		{"environment, several", "export A=1 DB_PASSWORD=" + s + " PORT=1\n", []string{"A=1"}},
		{"environment, a value on lines", "export DB_PASSWORD=\"a\nb " + s + "\nc\"\nPORT=1\n", []string{"PORT=1"}},
		{"addresses on lines", "https://user:" + s + "@github.com\nhttps://u2:" + s + "@gitlab.com\n", []string{"https://***@github.com\nhttps://***@gitlab.com\n"}},
		{"addresses on lines, a token alone", "https://" + s + "@github.com\n", []string{"https://***@github.com\n"}},
		{"logins on lines", "u:" + s + "@h:1\nport=1\n", []string{"port=1\n"}},
		{"properties, an escaped address", "url=https\\://u\\:" + s + "@h/\nport=1\n", []string{"url=https\\://***@h/\nport=1\n"}},
		{"properties, an escaped address in a name", "https\\://u\\:" + s + "@h/=1\nport=1\n", []string{"@h/=1\nport=1\n"}},
		{"Docker, a command in a list", "FROM x\nCMD [\"mysql\", \"-p" + s + "\"]\nENTRYPOINT [\"srv\", \"--password\", \"" + s + "\"]\nRUN mysql -p" + s + "\n", []string{"FROM x\nCMD [\"mysql\", \"-p***\"]\n"}},
		{"a section with a login", "[url \"https://oauth2:" + s + "@gitlab.com/\"]\n\tinsteadOf = https://gitlab.com/\n", []string{"[url \"https://***@gitlab.com/\"]\n\tinsteadOf = https://gitlab.com/\n"}},
		{"a section with a comment", "[a] # password: " + s + "\nport = 1\n", []string{"[a] # password: ***\nport = 1\n"}},
		{"a section with an address without quotes", "[https://u:" + s + "@h/]\nport = 1\n", []string{"[https://***@h/]\nport = 1\n"}},
		{"JSON, a login in a name", `{"auths":{"https://u:` + s + `@registry":{}},"n":1}`, []string{`{"auths":{"https://***@registry":{}},"n":1}`}},
		{"JSON, an escaped login in a name", `{"auths":{"https:\/\/u:` + s + `@registry":{}},"n":1}`, []string{`@registry":{}},"n":1}`}},
		{"JSON, a command in a text in a list", `["{\"token\":\"` + s + `\",\"a\":\"mysql -p` + s + ` db\"}",1]`, []string{` db\"}",1]`}},
		{"JSON, a setting in a name", `{"a":{"password=` + s + `":1},"n":1}`, []string{`"n":1}`}},
		{"YAML, a login in a name", "auths:\n  https://u:" + s + "@registry:\n    n: 1\nport: 1\n", []string{"port: 1\n"}},
		{"XML, a login in an instruction", "<?x url=\"https://u:" + s + "@h/\"?><a xmlns=\"http://u:" + s + "@h/\"><port>1</port></a>", []string{"<port>1</port>"}},
		{"a script's first word, MySQL", "mysql -uroot -p" + s + " db\nport=1\n", []string{"mysql -uroot -p*** db\nport=1\n"}},
		{"a script's first word, Redis", "redis-cli -a " + s + " ping\nport=1\n", []string{"redis-cli -a *** ping\nport=1\n"}},
		{"a script's first word, sshpass", "sshpass -p " + s + " ssh h\nport=1\n", []string{"port=1\n"}},
		{"a script's first word, sshpass, a password", "sshpass -p " + s + " srv password x\nport=1\n", []string{"port=1\n"}},
		{"a script's first word, Docker", "docker login -u u -p " + s + " h\nport=1\n", []string{"docker login -u u -p *** h\nport=1\n"}},
		{"a script's first word, on lines", "mysql \\\n  -uroot \\\n  -p" + s + " db\nport=1\n", []string{"port=1\n"}},
		{"a script's first word, a variable before", "export MYSQL=1 mysql -p" + s + "\nport=1\n", []string{"port=1\n"}},
		{"a script's first word, a path", "/usr/bin/mysql -p" + s + "\nport=1\n", []string{"port=1\n"}},
		{"HCL, a here-document", "resource \"x\" \"y\" {\n  secret_string = <<-EOF\n    a\n    " + s + "\n  EOF\n  port = 1\n}\n", []string{"  port = 1\n}\n"}},
		{"a shell, a here-document's variable", "DB_PASSWORD=<<'X'\n" + s + "\nX\nport=1\n", []string{"port=1\n"}},
		{"a shell, a here-document into a file", "DB_PASSWORD=<<X>f\n" + s + "\nX\nport=1\n", []string{"port=1\n"}},
		{"a shell, a here-document with more behind it", "DB_PASSWORD=<<\"X\"; a\n" + s + "\nX\nport=1\n", []string{"port=1\n"}},
		{"a here-document of Windows", "x = {\r\n  secret = <<-X\r\n  " + s + "\r\n  X\r\n  port = 1\r\n}\r\n", []string{"  port = 1\r\n"}},
		{"a placeholder", "DB_PASSWORD=<<PASSWORD>>\nport=1\nA_TOKEN=" + s + "\n", []string{"DB_PASSWORD=***\nport=1\n"}},
		{"a placeholder with blanks", "DB_PASSWORD=<< THE PASSWORD >>\nport=1\nA_TOKEN=" + s + "\n", []string{"DB_PASSWORD=***\nport=1\n"}},
		{"a placeholder of an ordinary setting", "HOST=<<HOST>>\nport=1\nA_TOKEN=" + s + "\n", []string{"HOST=<<HOST>>\nport=1\n"}},
		{"a placeholder in a text", "(a\npassword = <<PASSWORD>>\nport = 1\ntoken = " + s + "\n", []string{"port = 1\n"}},
		{"a here-document without an end", "port = 1\npassword = <<EOF\n" + s + "\n", []string{"port = 1\n"}},
		{"Java, a call with a constant", "props.put(SslConfigs.SSL_KEY_PASSWORD_CONFIG, \"" + s + "\");\nprops.put(\"acks\", \"all\");\n", []string{"props.put(\"acks\", \"all\");\n"}},
		{"YAML, a login in a list", "basic_auth: [u, " + s + "]\nauth: [none, basic]\n", []string{"auth: [none, basic]\n"}},
		{"a key of PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + s + "\n-----END PGP PRIVATE KEY BLOCK-----\nport 1\n", []string{"port 1\n"}},
		{"a key of PGP in a log", "read -----BEGIN PGP PRIVATE KEY BLOCK-----\n" + s + "\n-----END PGP PRIVATE KEY BLOCK-----\nafter\n", []string{"read ", "after\n"}},
		{"AWS", "aws_access_key_id = AKIA\naws_secret_access_key = " + s + "\nregion = x\n", []string{"region = x"}},
		{"a shell, a here-document", "cat > x <<EOF\npassword=" + s + "\nport=1\nEOF\n", []string{"port=1"}},
		{"a shell, a pipe", "echo 'x' | docker login --password-stdin\nexport TOKEN=$(echo " + s + ")\n", []string{"docker login"}},
		{"a shell, a continued line", "srv \\\n  --password \\\n  " + s + " \\\n  --port 1\n", []string{"--port 1"}},
		{"cookies in a log", "GET / Cookie: a=1; b=" + s + "\n", []string{"GET /"}},
		{"a query in a log", "GET /x?token=" + s + "&n=1 200\n", []string{"GET /x?", "n=1 200"}},
		{"basic", "curl -H \"Authorization: Basic " + login + "\" http://h/\n", []string{"http://h/"}},
		{"YAML, a program's words", "args:\n- mysql\n- -p" + s + "\n- db\n- curl\n- -u\n- u:" + s + "\nport: 1\n", []string{"- db\n", "port: 1\n"}},
		{"YAML, a block in a comment", "# password: |\n#   " + s + "\n# port: 1\nport: 2\n", []string{"# port: 1\nport: 2\n"}},
		{"JSON, a program's words on lines", "{\"args\": [\n  \"mysql\",\n  \"-p" + s + "\",\n  \"db\"\n], \"n\": 1}\n", []string{"\"db\"", "\"n\": 1"}},
		{"JSON, YAML in a text", `{"a":"x:\n  password: |\n    ` + s + `\nport: 1\n","n":1}`, []string{`port: 1`, `"n":1}`}},
		{"JSON, an object between a name and its value", "{\n  \"name\": \"A_TOKEN\",\n  \"x\": {\n    \"a\": \"}\"\n  },\n  \"value\": \"" + s + "\"\n}\n{\"value\": \"1g\"}\n", []string{`{"value": "1g"}`}},
		{"HTML", "{&quot;password&quot;:&quot;" + s + "&quot;,&quot;n&quot;:1}", []string{"&quot;n&quot;:1}"}},
	}, login)
}

// Texts that repeat what the scanner looks for take no time that grows with a square.
func TestRepeatedTexts(t *testing.T) {
	for _, part := range []string{"[", "{", "a: [", "- ", "<a b='token' name='token'>\n", "password: |\n", "name=token\n'", "--password 'a\n", "passwords:\n- a\n# - b\n", "a=[\n", "? ", "!a\n", "<a>", "{\"a\":", "token: [\n", "x token='a\n", "token: [token: [", "curl ", "-u "} {
		s := scanner{t: strings.Repeat(part, testkit.Cases(128<<10, 32<<10)/len(part))}
		s.scan()
		assert.True(t, s.work <= 2*s.mostWork(), "%q: %d bytes of %d were looked at", part, s.work, len(s.t))
		got := s.found.hide(s.t)
		assert.True(t, strings.Count(got, "\n") >= strings.Count(s.t, "\n")/1000, "%q: got %.100q", part, got)
	}
}

// A secret is found however deep it is.
func TestNested(t *testing.T) {
	for _, tt := range []struct{ name, open, inside, closed string }{
		{"JSON, lists", "[", `"password=` + canary + `"`, "]"},
		{"JSON, maps", `{"a":`, `{"password":"` + canary + `"}`, "}"},
		{"XML", "<a>", "<password>" + canary + "</password>", "</a>"},
		{"YAML, tags", "!a ", "password: " + canary, ""},
		{"YAML, keys", "? ", "password: " + canary, ""},
		{"YAML, items on lines", "-\n", "password: " + canary, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 64, 1000, 3000} {
				text := strings.Repeat(tt.open, n) + tt.inside + strings.Repeat(tt.closed, n)
				got := new(Mask).Text(text)
				assert.True(t, !strings.Contains(got, canary), "%d levels: got %.2000q", n, got)
			}
		})
	}
}
