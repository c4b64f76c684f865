// The names of version 3, and a Java list of addresses.
var old = {
	"load": {
		"limit": { "count": 100 },
		"threads": 4
	},
	"run": { "id": "compatibility" },
	"storage": {
		"auth": { "id": "user1" },
		"node": { "addrs": new java.util.ArrayList(["127.0.0.1", "127.0.0.2"]) }
	}
};
Load.config(old).run();
