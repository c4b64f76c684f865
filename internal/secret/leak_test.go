package secret

import (
	"strings"
	"testing"
)

// TestDocumentHides: forms of other programs' files with a secret. kept is the
// text around it that must stay readable.
func TestDocumentHides(t *testing.T) {
	const s = canary
	tests := []struct{ name, text, kept string }{
		{"Clojure", `(def email (mailer {:from "r@h" :host "smtp" :user "u" :pass "` + s + `" :tls true}))`, `:user "u" :pass *** :tls true`},
		{"Clojure, a password", `(influxdb {:host "h" :password "` + s + `"})`, `{:host "h" :password ***})`},
		{"Clojure, a key", `(pagerduty {:service-key "` + s + `"})`, ``},
		{"Clojure, on the next line", "(influxdb {:password\n  \"" + s + "\" :port 1})", ":port 1"},
		{"Clojure, a comma", `{:password, "` + s + `", :port 1}`, ":port 1"},
		{"Clojure, a list", `{:tokens ["a]b" "` + s + `"] :port 1}`, ":port 1"},
		{"Clojure, a call", `{:password (str "a" "` + s + `") :port 1}`, ":port 1"},
		{"Clojure, a word", `(def db-password "what it is" "` + s + `")`, "(def db-password"},
		{"Clojure, a symbol", `(let [password "` + s + `"] 1)`, "1)"},
		{"Clojure, without a name", `(def pd (pagerduty "` + s + `"))`, "(pagerduty"},
		{"Clojure, both without a name", `(librato-metrics "me" "` + s + `")`, "(librato-metrics"},
		{"properties, a line that goes on", "ssl.key.password=\\\n  " + s + "\nport=1\n", "port=1\n"},
		{"properties, a word that goes on", "ssl.key.password=abc\\\n   " + s + "\nport=1\n", "port=1\n"},
		{"properties, three lines", "ssl.key.password=a\\\n   b\\\n  " + s + "\nport=1\n", "port=1\n"},
		{"properties, Windows", "ssl.key.password=abc\\\r\n   " + s + "\r\nport=1\r\n", "port=1"},
		{"properties, a blank", "ssl.keystore.password " + s + "\nport=1\n", "port=1\n"},
		{"properties, a tab", "ssl.keystore.password\t" + s + "\nport=1\n", "port=1\n"},
		{"properties, a blank within", "ssl.keystore.password a " + s + "\nport=1\n", "port=1\n"},
		{"properties, a blank and a line", "ssl.keystore.password \\\n  " + s + "\nport=1\n", "port=1\n"},
		{"properties, an old one", "#ssl.keystore.password " + s + "\nport=1\n", "port=1\n"},
		{"properties, quotes are of it", "ssl.key.password=\"a\" " + s + "\nport=1\n", "port=1\n"},
		{"properties, a key", "ssl.keystore.key=" + s + "\nssl.keystore.type=PEM\n", "ssl.keystore.type=PEM\n"},
		{"properties, a bracket", "ssl.key.password=(" + s + "\nport=1\nx=(1)\ny=)\n", "ssl.key.password=***\nport=1\nx=(1)\ny=)\n"},
		{"properties, a brace, a blank", "ssl.key.password {" + s + "\nport=1\n", "password ***\nport=1\n"},
		{"properties, a quote", "ssl.key.password='" + s + "\nport=1\n# it's\nx=1\n", "ssl.key.password=***\nport=1\n# it's\nx=1\n"},
		{"properties, a quote goes on", "ssl.key.password: \"a\\\n  " + s + "\nport=1\n", "password: ***\nport=1\n"},
		{"TOML, a name with dots, a list", "x.tokens = [\n  \"a\",\n\"" + s + "\",\n]\nport = 1\n", "port = 1\n"},
		{"TOML, a name with dots, three quotes", "x.password = \"\"\"\na\n" + s + "\"\"\"\nport = 1\n", "port = 1\n"},
		{"YAML, a name with dots, in quotes", "x.password: \"a\n  " + s + "\"\nport: 1\n", "port: 1\n"},
		{"a shell, in quotes on lines", "export DB_PASSWORD='a\n" + s + "'\nPORT=1\n", "PORT=1\n"},
		{"properties, a list's item", "users.tokens[0]=" + s + "\nport=1\n", "port=1\n"},
		{"YAML, a map on a line", "passwords: {kibana: " + s + ", b: " + s + "}\nport: 1\n", "port: 1\n"},
		{"YAML, a map below", "passwords:\n  alice: a\n  bob: " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, secrets below", "x:\n  secrets:\n    alice:\n      - " + s + "\n    bob: " + s + "\n  port: 1\n", "  port: 1\n"},
		{"YAML, one below one", "password:\n  alice: " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, below one, what is used", "api_key:\n  enabled: true\n  limit: " + s + "\n  alice: 12345\n  id: " + s + "\nport: 1\n", "api_key:\n  enabled: true\n  ***\n  ***\n  ***\nport: 1\n"},
		{"YAML, below several", "passwords:\n  max: 12345\n  a: " + s + "\nport: 1\n", "passwords:\n  ***\n  ***\nport: 1\n"},
		{"YAML, in braces, not all", "api_key: {enabled: true, id: " + s + "}\nport: 1\n", "api_key: ***\nport: 1\n"},
		{"YAML, in braces of several", "passwords: {max: 12345, a: " + s + "}\nport: 1\n", "passwords: ***\nport: 1\n"},
		{"YAML, a block of what looks used", "password: |\n  limit: 100\n  " + s + "\nport: 1\n", "password: ***\nport: 1\n"},
		{"JSON, in braces on lines, not all", "{\"api_key\": {\n    \"enabled\": true,\n    \"id\": \"" + s + "\"\n  },\n  \"port\": 1\n}\n", "\"port\": 1\n"},
		{"YAML, credentials", "credentials:\n  user: u\n  alice: " + s + "\n", "  user: u\n"},
		{"YAML, after one of them", "credentials:\n  password:\n    a\n  alice: " + s + "\n  type: x\n", "  type: x\n"},
		{"YAML, an apostrophe", "password: 'it''s " + s + "'\nport: 1\n", "port: 1\n"},
		{"YAML, an item in quotes", "passwords:\n- \"k: " + s + "\"\nport: 1\n", "port: 1\n"},
		{"YAML, an item with a name", "passwords:\n- k: " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, an old item", "passwords:\n- a\n# - " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, below a comment", "passwords: # these\n- " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, goes on", "password: a\n  " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, goes on in quotes", "password: \"a\n  " + s + "\"\nport: 1\n", "port: 1\n"},
		{"YAML, a tag", "password: !vault |\n  x\n  " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, a tag on a line", "x: {password: !!str " + s + ", port: 1}\n", "port: 1"},
		{"YAML, an anchor", "password: &p " + s + "\nport: 1\n", "port: 1\n"},
		{"YAML, a block in a list", "- password: >-\n    " + s + "\n  port: 1\n", "  port: 1\n"},
		{"YAML, a variable's block", "env:\n- name: DB_PASSWORD\n  value: |\n    x\n    " + s + "\n- name: HEAP\n  value: 1g\n", "- name: HEAP\n  value: 1g\n"},
		{"YAML, a variable's list", "env:\n- name: DB_PASSWORDS\n  value:\n  - " + s + "\n- name: HEAP\n  value: 1g\n", "- name: HEAP\n  value: 1g\n"},
		{"YAML, a variable, value first", "env:\n- value: " + s + "\n  name: DB_PASSWORD\n- value: 1g\n  name: HEAP\n", "- value: 1g\n  name: HEAP\n"},
		{"YAML, words", "args:\n- --password\n- " + s + "\n- --port\n- 1\n", "- --port\n- 1\n"},
		{"YAML, words on a line", "args: [\"--password\", \"" + s + "\", \"--port\"]\n", `"--port"]`},
		{"YAML, a variable's word", "environment:\n- \"DB_PASSWORD=a " + s + "\"\n- HEAP=1g\n", "- HEAP=1g\n"},
		{"JSON, a map", `{"passwords":{"alice":"` + s + `"},"port":1}`, `{"passwords":***,"port":1}`},
		{"JSON, a name and a password", `{"auth":["u","` + s + `"],"port":1}`, `{"auth":***,"port":1}`},
		{"JSON, a login in a list", `{"auth":["u:` + s + `"],"port":1}`, `{"auth":***,"port":1}`},
		{"YAML, a login among methods", "auth: [basic, jwt, \"u:" + s + "\"]\nport: 1\n", "port: 1\n"},
		{"YAML, a name and a password on lines", "auth:\n- u\n- " + s + "\nport: 1\n", "port: 1\n"},
		{"JSON, a deep map", `{"secrets":{"a":{"x":"}"},"b":["` + s + `"]},"port":1}`, `"port":1}`},
		{"JSON, a bracket in a text", `{"passwords":["a]b","` + s + `"],"port":1}`, `,"port":1}`},
		{"JSON, a bracket and a quote in a text", `{"passwords":["a\"]b","it's","` + s + `"],"port":1}`, `,"port":1}`},
		{"JSON, value first", `{"value":"` + s + `","name":"DB_PASSWORD"}`, `"name":"DB_PASSWORD"}`},
		{"JSON, value first, a bracket in it", `[{"value":"a{` + s + `","name":"DB_PASSWORD"},{"value":"1g","name":"HEAP"}]`, `{"value":"1g","name":"HEAP"}`},
		{"JSON, a list of values", `{"name":"tokens","values":["a","` + s + `"]}`, `"name":"tokens"`},
		{"JSON, in a text", `{"config":"{\"password\":\"` + s + `\",\"port\":1}"}`, `\"port\":1`},
		{"JSON, words", `["srv","--api-key","` + s + `","--port"]`, `"--port"]`},
		{"JSON, on lines", "{\n  \"password\":\n    \"" + s + "\",\n  \"port\": 1\n}\n", "\"port\": 1\n}\n"},
		{"XML, a property, value first", `<property value="` + s + `" name="db.password"/><property value="1" name="n"/>`, `<property value="1" name="n"/>`},
		{"XML, CDATA", "<password><![CDATA[" + s + "]]></password><port>1</port>", "<port>1</port>"},
		{"XML, elements below", "<passwords><alice>" + s + "</alice></passwords><port>1</port>", "<port>1</port>"},
		{"XML, an attribute", `<password user="u" value="` + s + `"/><port>1</port>`, "<port>1</port>"},
		{"XML, a namespace", "<x:password>" + s + "</x:password><port>1</port>", "<port>1</port>"},
		{"XML, without an end", "<port>1</port><password>" + s, "<port>1</port>"},
		{"XML, elements, value first", "<value>" + s + "</value><name>db.password</name><port>1</port>", "<port>1</port>"},
		{"XML, a list of properties", "<key>password</key>\n<string>" + s + "</string><key>port</key>", "<key>port</key>"},
		{"XML, Tomcat", `<Connector port="1" keystorePass="` + s + `"/>`, `port="1"`},
		{"XML, a property's element", `<property name="db.password"><value>` + s + `</value></property><port>1</port>`, `<property name="db.password">***</property><port>1</port>`},
		{"XML, an element's name stays", "<param-name>db.password</param-name><param-value>" + s + "</param-value>", "<param-name>db.password</param-name><param-value>***</param-value>"},
		{"XML, an entry", `<entry key="password">` + s + `</entry><port>1</port>`, "<port>1</port>"},
		{"Clojure, a login", `(def es {:basic-auth ["u]" "` + s + `"] :port 1})`, ":port 1"},
		{"a call", `define('DB_PASSWORD', '` + s + `');` + "\nport(1)\n", "port(1)\n"},
		{"an index", `config["password"] = "` + s + `"` + "\nport = 1\n", "port = 1\n"},
		{"TOML, three quotes", "password = \"\"\"\na\n" + s + "\"\"\"\nport = 1\n", "port = 1\n"},
		{"TOML, a section", "[passwords]\nalice = \"" + s + "\"\n[server]\nport = 1\n", "[server]\nport = 1\n"},
		{"TOML, a section, indented", "  [passwords]\n  alice = \"" + s + "\"\n(port 1)\n", "(port 1)\n"},
		{"TOML, a section, lists", "[passwords]\nall = [\n  \"a\",\n\"" + s + "\",\n]\nb = \"" + s + "\"\n[x]\nport = 1\n", "port = 1\n"},
		{"TOML, a section, three quotes", "[passwords]\na = \"\"\"\nx\n" + s + "\n\"\"\"\nb = \"" + s + "\"\n[x]\nport = 1\n", "port = 1\n"},
		{"INI, a section, goes on", "[passwords]\n; x\na = 1\n  x " + s + "\n\n# y\nb = " + s + "\n", "[passwords]\n"},
		{"INI, a section of words", "[passwords]\n" + s + "\n[x]\nport = 1\n", "port = 1\n"},
		{"TOML, a map on a line", "tokens = { a = \"" + s + "\" }\nport = 1\n", "port = 1\n"},
		{"TOML, tables", "[[env]]\nvalue = \"" + s + "\"\nname = \"DB_PASSWORD\"\n[[env]]\nname = \"HEAP\"\nvalue = \"1g\"\n", "value = \"1g\"\n"},
		{"HCL, a block", "credentials {\n  a = \"" + s + "\"\n}\nport = 1\n", "port = 1\n"},
		{"HCL, a map", "secrets = {\n  a = \"" + s + "\"\n}\nport = 1\n", "port = 1\n"},
		{"HCL, a comment in a list", "tokens = [ # [1]\n  \"a\", # ]\n  \"" + s + "\"\n]\nport = 1\n", "port = 1\n"},
		{"environment, quotes", "DB_PASSWORD='a'\"" + s + "\"\nPORT=1\n", "PORT=1\n"},
		{"environment, systemd", "Environment=\"DB_PASSWORD=a " + s + "\" \"PORT=1\"\n", `"PORT=1"`},
		{"environment, an escaped blank", "srv DB_PASSWORD=a\\ " + s + " PORT=1\n", "PORT=1\n"},
		{"environment, PowerShell", "$env:DB_PASSWORD = \"" + s + "\"\n", "DB_PASSWORD"},
		{"environment, Docker", "ENV DB_PASSWORD " + s + "\nENV PORT 1\n", "ENV PORT 1\n"},
		{"environment, Redis", "REDISCLI_AUTH=" + s + "\nSSL_CLIENT_AUTH=required\n", "SSL_CLIENT_AUTH=required\n"},
		{"Redis", "port 1\nrequirepass " + s + "\nmasterauth " + s + "\n", "port 1\n"},
		{"INI, goes on", "[a]\npassword = x\n  " + s + "\nport = 1\n", "port = 1\n"},
		{"Ruby", ":password => \"" + s + "\", :port => 1\n", ":port => 1"},
		{"Logstash", "output {\n  password => '" + s + "'\n  port => 1\n}\n", "port => 1\n"},
		{"PostgreSQL's users", "h:5432:db:u:" + s + "\n", "h:5432:db:u:***\n"},
		{"a DSN", "dsn = \"u:" + s + "@tcp(h:3306)/d\"\n", "h:3306"},
		{"an address, a slash", "url=https://u:a/" + s + "@h/\n", "@h/\n"},
		{"an address, a mark", "url=https://u:a?" + s + "#b@h/\n", "@h/\n"},
		{"an address, a quote", "url: \"https://u:a'" + s + "@h/\"\nport: 1\n", "port: 1\n"},
		{"an address, a blank", "url: 'https://u:a " + s + "@h/'\nport: 1\n", "port: 1\n"},
		{"a signed address", "url=https://h/x?se=1&sig=" + s + "&a=b\n", "&a=b\n"},
		{"a header in a script", "curl -H 'Authorization: Digest username=\"u\", response=\"" + s + "\"' http://h/\n", "http://h/"},
		{"a key on a line", "private_key = \"-----BEGIN PRIVATE KEY-----\\n" + s + "\\n-----END PRIVATE KEY-----\"\n", "private_key"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Text(test.text)
			if strings.Contains(got, s) || !strings.Contains(got, test.kept) {
				t.Errorf("got\n%s\nof\n%s\nwant in it\n%s", got, test.text, test.kept)
			}
		})
	}
}

// TestDocumentKeeps: ordinary settings below and beside what sounds like a
// secret's name stay unchanged.
func TestDocumentKeeps(t *testing.T) {
	tests := []struct{ name, text string }{
		{"Clojure, arguments", "(defn pager\n  [service-key]\n  (let [x (= 1 2)]\n    (where (= service \"a\") y)))\n(tcp-server :port 5555)\n"},
		{"Clojure, arguments in column 0", "(defn f\n[user password]\n(streams 1))\n(tcp-server :port 5555)\n"},
		{"Clojure, one argument", "(defn f\n  [token]\n  (prn 1))\n(def x 1)\n"},
		{"YAML, how keys are used", "apm-server:\n  auth:\n    api_key:\n      enabled: true\n      # the most\n      limit: 100 # keys\n    anonymous:\n      enabled: false\n"},
		{"YAML, how tokens are used", "xpack.security.authc:\n  token:\n    enabled: true\n    timeout: 20m\n  api_key:\n    cache:\n      ttl: 1d\n      hash_algo: ssha256\n"},
		{"YAML, in braces", "api_key: {enabled: true, limit: 100}\nport: 1\n"},
		{"YAML, methods of logging in", "a:\n  auth: []\nb:\n  auth: [scram-sha-256, gssapi]\nc:\n  auth: [oauth2, jwt]\nd:\n  auth: [jwt]\ne:\n  auth:\n  - OAUTHBEARER\n  - x509\n  - other\n"},
		{"JSON, methods of logging in", `{"auth": [], "x": {"auth": ["SCRAM-SHA-512", "mtls"]}}`},
		{"JSON, in braces", `{"api_key": {"enabled": true, "limit": 100, "cache": {"ttl": "1m"}}, "port": 1}`},
		{"JSON, in braces on lines", "{\n  \"api_key\": {\n    \"enabled\": true,\n    \"limit\": 100\n  },\n  \"port\": 1\n}\n"},
		{"JSON, a word in a list", "{\"required\":\n  [\"password\"]\n, \"port\": 1}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			if got := m.Text(test.text); got != test.text {
				t.Errorf("got\n%s\nof\n%s", got, test.text)
			}
		})
	}
}

// TestCommandHides: command lines with a secret.
func TestCommandHides(t *testing.T) {
	const s = canary
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"a user's flag", []string{"curl", "--user=u:" + s, "h"}, "curl --user=u:*** h"},
		{"a user's letter", []string{"curl", "-uu:" + s, "h"}, "curl -uu:*** h"},
		{"a user's letter with a mark", []string{"curl", "-u=u:" + s, "h"}, "curl -u=u:*** h"},
		{"a user's letter behind others", []string{"curl", "-sSu", "u:" + s, "h"}, "curl -sSu u:*** h"},
		{"an address glued on", []string{"srv", "-uhttp://h:80"}, "srv -uhttp://h:80"},
		{"a variable", []string{"env", "REDISCLI_AUTH=" + s, "redis-cli"}, "env REDISCLI_AUTH=*** redis-cli"},
		{"a variable of a mode", []string{"env", "SSL_CLIENT_AUTH=required", "srv"}, "env SSL_CLIENT_AUTH=required srv"},
		{"begins with a dash", []string{"srv", "--password", "-" + s, "x"}, "srv --password *** x"},
		{"begins with two", []string{"srv", "--token", "--" + s, "x"}, "srv --token *** x"},
		{"several", []string{"srv", "--passwords", "a," + s, "-v"}, "srv --passwords *** -v"},
		{"several tokens", []string{"srv", "--tokens", "a," + s, "-v"}, "srv --tokens *** -v"},
		{"several with a mark", []string{"srv", "--password-list=a," + s, "-v"}, "srv --password-list=*** -v"},
		{"a blank in a login in a script", []string{"sh", "-c", "curl -u 'u:a " + s + "' h"}, ""},
		{"a login in two pairs of quotes", []string{"sh", "-c", `curl -u "u":"` + s + `" h`}, ""},
		{"a login with a mark in a script", []string{"sh", "-c", "curl --user='u:a " + s + "' h"}, ""},
		{"an escaped blank in a script", []string{"sh", "-c", `curl -u u:a\ ` + s + " h"}, ""},
		{"a header", []string{"curl", "--header", `Authorization: Digest username="u", response="` + s + `"`, "h"}, "curl --header 'Authorization: ***' h"},
		{"a header with a mark", []string{"curl", `--header=Authorization: Digest username="u", response="` + s + `"`, "h"}, ""},
		{"a header in a script", []string{"sh", "-c", `curl -H 'Authorization: Digest username="u", response="` + s + `"' h`}, ""},
		{"cookies", []string{"curl", "-H", "Cookie: a=1; b=" + s}, "curl -H 'Cookie: ***'"},
		{"a slash in an address", []string{"srv", "https://u:a/" + s + "@h/"}, "srv https://***@h/"},
		{"a blank in an address", []string{"srv", "https://u:a " + s + "@h/"}, "srv https://***@h/"},
		{"a blank in a flag's address", []string{"srv", "--url=https://u:a " + s + "@h/"}, "srv --url=https://***@h/"},
		{"a container's variable", []string{"docker", "run", "--env=DB_PASSWORD=a " + s, "x"}, "docker run --env=DB_PASSWORD=*** x"},
		{"curl's cookies", []string{"curl", "-b", "session=" + s, "h"}, "curl -b *** h"},
		{"curl's cookies behind another letter", []string{"curl", "-sb", "a=" + s, "h"}, "curl -sb *** h"},
		{"curl's cookies, glued", []string{"curl", "-ba=" + s, "h"}, "curl -b*** h"},
		{"curl's file of cookies", []string{"curl", "-b", "jar.txt", "-bjar.txt", "h"}, "curl -b jar.txt -bjar.txt h"},
		{"zip, a file named curl", []string{"zip", "-r", "out.zip", "src/curl", "-P", s}, "zip -r out.zip src/curl -P ***"},
		{"Redis, a host named curl", []string{"redis-cli", "-h", "curl", "-a", s}, "redis-cli -h curl -a ***"},
		{"Redis, a bar among its arguments", []string{"redis-cli", "-d", "|", "-a", s}, "redis-cli -d '|' -a ***"},
		{"Redis in a script, a bar in quotes", []string{"sh", "-c", "redis-cli -d '|' -a " + s}, `sh -c 'redis-cli -d '\''|'\'' -a ***'`},
		{"two programs in a script", []string{"sh", "-c", "mysql -p" + s + " db | head -p 8 ; zip -p 9 && redis-cli -p 6379 -a " + s}, "sh -c 'mysql -p*** db | head -p 8 ; zip -p 9 && redis-cli -p 6379 -a ***'"},
		{"a flag with the letter of another program", []string{"sh", "-c", "mysql influx -password " + s}, "sh -c 'mysql influx -password ***'"},
		{"a quote in an address", []string{"srv", `https://u:a"` + s + "@h/"}, "srv https://***@h/"},
		{"no scheme", []string{"srv", "u:" + s + "@h:1"}, "srv u:***@h:1"},
		{"an image", []string{"docker", "run", "img:1@sha256:abc"}, "docker run img:1@sha256:abc"},
		{"a secret key", []string{"srv", "--secret-key", s, "-v"}, "srv --secret-key *** -v"},
		{"an account's key", []string{"srv", "--account-key", s, "-v"}, "srv --account-key *** -v"},
		{"a key with a mark", []string{"srv", "--account-key=" + s, "-v"}, "srv --account-key=*** -v"},
		{"a flag that goes on", []string{"srv", "--password-value-now", s, "-v"}, "srv --password-value-now *** -v"},
		{"MySQL", []string{"mysql", "-uroot", "-p" + s, "db"}, "mysql -uroot -p*** db"},
		{"MySQL, a path", []string{"/usr/bin/mysqldump", "-p" + s}, "/usr/bin/mysqldump -p***"},
		{"MySQL in a script", []string{"sh", "-c", "mysql -uroot -p" + s + " db"}, ""},
		{"a port", []string{"srv", "-p8080", "-p", "80"}, "srv -p8080 -p 80"},
		{"Docker", []string{"docker", "login", "-u", "u", "-p", s, "h"}, "docker login -u u -p *** h"},
		{"a login's flag", []string{"srv", "--login", "u:" + s}, "srv --login u:***"},
		{"Redis", []string{"redis-cli", "-a", s, "ping"}, "redis-cli -a *** ping"},
		{"Java's keystore", []string{"keytool", "-storepass", s}, "keytool -storepass ***"},
		{"OpenSSL", []string{"openssl", "x", "-passin", "pass:" + s}, ""},
		{"a script in a script", []string{"sh", "-c", `sh -c "srv --password 'a ` + s + `'"`}, ""},
		{"a signed address", []string{"curl", "https://h/?sig=" + s}, "curl https://h/?sig=***"},
		{"JSON", []string{"srv", "--config", `{"passwords":{"a":"` + s + `"}}`}, `srv --config '{"passwords":***}'`},
		{"an empty one", []string{"srv", "--password", "", "-v"}, "srv --password '' -v"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Command(test.args)
			if strings.Contains(got, s) || test.want != "" && got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			whole := s
			for _, more := range []string{"-" + s, "--" + s, "a " + s, "a/" + s, `a"` + s} {
				if strings.Contains(strings.Join(test.args, " "), more) {
					whole = more
				}
			}
			if strings.Contains(strings.Join(test.args, " "), s) && strings.Contains(m.Text("it says "+whole+" aloud"), s) {
				t.Error("the secret of the command line is not removed from other text")
			}
		})
	}
}

// What is known of a login in an address is the whole and its password, and no word of a text
// behind the address.
func TestWordsBehindAnAddress(t *testing.T) {
	for _, tt := range []struct{ name, arg, shown, line, want string }{
		{"a path", "--note=https://ci:8443/1 done, info, see a@b", "--note=https://ci:8443/1 done, info, see a@b", "info: done, see 8443", "info: done, see 8443"},
		{"a query", "https://ci:8443?x done, info, see a@b", "https://ci:8443?x done, info, see a@b", "info: done", "info: done"},
		{"a login and a path", "https://u:" + canary + "@ci/1 done, info, see a@b", "https://***@ci/1 done, info, see a@b", "info: " + canary, "info: ***"},
		{"no path", "https://ci:8443 done, info, see a@b", "https://***@b", "info: done, see 8443", "info: done, see 8443"},
		{"a blank in a password", "https://u:a, " + canary + "@h/x", "https://***@h/x", "info: a, " + canary, "info: ***"},
		{"an escaped colon", `https\://u\:` + canary + "@h/x", `https\://***@h/x`, "info: " + canary, "info: ***"},
		{"no scheme", "info:" + canary + "@h", "info:***@h", "info: " + canary, "info: ***"},
		{"a token alone", "https://" + canary + "@h/x", "https://***@h/x", "info: " + canary, "info: ***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			if got := m.Args([]string{tt.arg})[0]; got != tt.shown {
				t.Errorf("got %s, want %s", got, tt.shown)
			}
			if got := m.Text(tt.line); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A script is shown in its quotes only if each of its secrets is written there as it is.
func TestEscapesInScripts(t *testing.T) {
	for _, script := range []string{
		`mysql -pabcd; curl -u "u:a\"` + canary + `" h`,
		`ssh h "mysql -pabcd; curl -u \"u:a\\\"` + canary + `\" h"`,
	} {
		if got := new(Mask).Command([]string{"sh", "-c", script}); strings.Contains(got, canary) {
			t.Errorf("got %s\nof %s", got, script)
		}
	}
}
