// Users and buckets by a pattern of version 3. A comma is missing.
Load
	.config({
		"item": {
			"data": { "size": "10KB" },
			"output": { "path": "/bucket-%d(314159265){00}[0-99]" }
		},
		"load": {
			"limit": { "count": 10000 }
			"step": { "id": "multiuser" }
		},
		"storage": {
			"auth": {
				"id": "user-%d(314159265){00}[0-99]",
				"file": "credentials.csv"
			}
		}
	})
	.run();
