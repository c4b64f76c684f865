// Without semicolons.
var secure = {
	"storage": { "net": { "ssl": true } }
}

PreconditionLoad
	.config(secure)
	.config({
		"item": { "output": { "file": ITEM_LIST_FILE } },
		"load": {
			"op": { "limit": { "count": 100000 } },
			"step": { "limit": { "size": "100GB", "time": 100 } }
		}
	})
	.run()

ReadLoad
	.config(secure)
	.config({ "item": { "input": { "file": ITEM_LIST_FILE } } })
	.run()
