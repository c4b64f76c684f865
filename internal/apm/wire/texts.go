package wire

import (
	"math/rand/v2"
	"strconv"
)

// The texts of an invented shop, all ASCII: bodies must not contain bytes from
// 0xf8 up (see Gzip). They have realistic lengths, since frames make up most of
// what agents send.

// An agent is one of Elastic's agents, with what it reports about its environment.
type agent struct {
	name, version               string
	language, languageVersion   string
	runtime, runtimeVersion     string
	framework, frameworkVersion string
	rum                         bool
	frames                      []frame
}

// A frame is a template of a stack frame.
type frame struct {
	file, path, module, function string
	line                         string // source line
	library                      bool
}

var agents = []agent{
	{
		name: "go", version: "2.7.1", language: "go", languageVersion: "go1.24.2", runtime: "gc", runtimeVersion: "go1.24.2",
		framework: "gin", frameworkVersion: "v1.10.0", frames: goFrames,
	},
	{
		name: "java", version: "1.52.2", language: "Java", languageVersion: "21.0.6", runtime: "Java", runtimeVersion: "21.0.6",
		framework: "Spring Web MVC", frameworkVersion: "6.2.3", frames: javaFrames,
	},
	{
		name: "nodejs", version: "4.11.0", language: "javascript", languageVersion: "22.14.0", runtime: "node", runtimeVersion: "22.14.0",
		framework: "express", frameworkVersion: "4.21.2", frames: nodeFrames,
	},
	{
		name: "python", version: "6.23.0", language: "python", languageVersion: "3.12.9", runtime: "CPython", runtimeVersion: "3.12.9",
		framework: "django", frameworkVersion: "5.1.6", frames: pythonFrames,
	},
	{
		name: "rum-js", version: "5.16.3", language: "javascript", languageVersion: "", runtime: "browser", runtimeVersion: "134",
		framework: "react", frameworkVersion: "18.3.1", rum: true, frames: rumFrames,
	},
}

func agentNamed(name string) *agent {
	for i := range agents {
		if agents[i].name == name {
			return &agents[i]
		}
	}
	return nil
}

// AgentNames are the names of all agents.
func AgentNames() []string {
	var names []string
	for _, a := range agents {
		names = append(names, a.name)
	}
	return names
}

var goFrames = []frame{
	{"cart.go", "/src/shop/cart/cart.go", "shop/cart", "(*Cart).Total", "\tsum += line.Price.Times(line.Quantity)", false},
	{"store.go", "/src/shop/cart/store.go", "shop/cart", "(*Store).Load", "\trow := s.db.QueryRowContext(ctx, selectCart, id)", false},
	{"checkout.go", "/src/shop/checkout/checkout.go", "shop/checkout", "(*Service).Place", "\torder, err := s.orders.Create(ctx, cart, customer)", false},
	{"payment.go", "/src/shop/payment/payment.go", "shop/payment", "(*Gateway).Authorize", "\tresp, err := g.client.Do(req.WithContext(ctx))", false},
	{"handler.go", "/src/shop/api/handler.go", "shop/api", "(*API).PostOrder", "\tif err := a.checkout.Place(r.Context(), id); err != nil {", false},
	{"sql.go", "/usr/local/go/src/database/sql/sql.go", "database/sql", "(*DB).QueryContext", "\t\trows, err = db.query(ctx, query, args, strategy)", true},
	{"server.go", "/usr/local/go/src/net/http/server.go", "net/http", "HandlerFunc.ServeHTTP", "\tf(w, r)", true},
	{"context.go", "/go/pkg/mod/github.com/gin-gonic/gin@v1.10.0/context.go", "github.com/gin-gonic/gin", "(*Context).Next", "\t\tc.handlers[c.index](c)", true},
}

var javaFrames = []frame{
	{"CartService.java", "", "com.example.shop.cart", "com.example.shop.cart.CartService.total", "        return lines.stream().map(Line::price).reduce(Money.ZERO, Money::plus);", false},
	{"CartRepository.java", "", "com.example.shop.cart", "com.example.shop.cart.CartRepository.findByCustomer", "        return em.createQuery(BY_CUSTOMER, Cart.class).setParameter(1, id).getSingleResult();", false},
	{"CheckoutController.java", "", "com.example.shop.web", "com.example.shop.web.CheckoutController.placeOrder", "        final Order order = checkout.place(cartId, customerId);", false},
	{"PaymentClient.java", "", "com.example.shop.payment", "com.example.shop.payment.PaymentClient.authorize", "        return http.send(request, BodyHandlers.ofString()).body();", false},
	{"DispatcherServlet.java", "", "org.springframework.web.servlet", "org.springframework.web.servlet.DispatcherServlet.doDispatch", "\t\t\t\tmv = ha.handle(processedRequest, response, mappedHandler.getHandler());", true},
	{"FrameworkServlet.java", "", "org.springframework.web.servlet", "org.springframework.web.servlet.FrameworkServlet.service", "\t\t\tprocessRequest(request, response);", true},
	{"ApplicationFilterChain.java", "", "org.apache.catalina.core", "org.apache.catalina.core.ApplicationFilterChain.doFilter", "                internalDoFilter(request, response);", true},
	{"HikariProxyPreparedStatement.java", "", "com.zaxxer.hikari.pool", "com.zaxxer.hikari.pool.HikariProxyPreparedStatement.executeQuery", "", true},
	{"SelectionQuery.java", "", "org.hibernate.query.spi", "org.hibernate.query.spi.AbstractSelectionQuery.getSingleResult", "\t\t\tfinal List<R> list = list();", true},
}

var nodeFrames = []frame{
	{"routes/orders.js", "/opt/shop/routes/orders.js", "", "postOrder", "    const order = await checkout.place(req.params.id, req.user)", false},
	{"lib/checkout.js", "/opt/shop/lib/checkout.js", "", "Checkout.place", "    const total = await this.cart.total(cartId)", false},
	{"lib/cart.js", "/opt/shop/lib/cart.js", "", "Cart.total", "    return lines.reduce((sum, l) => sum + l.price * l.quantity, 0)", false},
	{"node_modules/express/lib/router/layer.js", "/opt/shop/node_modules/express/lib/router/layer.js", "express", "Layer.handle [as handle_request]", "    fn(req, res, next);", true},
	{"node_modules/express/lib/router/index.js", "/opt/shop/node_modules/express/lib/router/index.js", "express", "next", "        layer.handle_request(req, res, next);", true},
	{"node_modules/pg/lib/client.js", "/opt/shop/node_modules/pg/lib/client.js", "pg", "Client.query", "      query.callback = config.callback || callback", true},
	{"node:internal/process/task_queues", "node:internal/process/task_queues", "", "process.processTicksAndRejections", "", true},
}

var pythonFrames = []frame{
	{"shop/views/orders.py", "/srv/shop/views/orders.py", "shop.views.orders", "post", "        order = self.checkout.place(cart_id, request.user)", false},
	{"shop/cart.py", "/srv/shop/cart.py", "shop.cart", "total", "        return sum(line.price * line.quantity for line in self.lines)", false},
	{"shop/payment.py", "/srv/shop/payment.py", "shop.payment", "authorize", "        response = self.session.post(self.url, json=payload, timeout=3)", false},
	{"django/core/handlers/base.py", "/usr/lib/python3.12/site-packages/django/core/handlers/base.py", "django.core.handlers.base", "_get_response", "                response = wrapped_callback(request, *callback_args, **callback_kwargs)", true},
	{"django/db/models/query.py", "/usr/lib/python3.12/site-packages/django/db/models/query.py", "django.db.models.query", "__iter__", "        results = compiler.execute_sql(", true},
	{"django/db/backends/utils.py", "/usr/lib/python3.12/site-packages/django/db/backends/utils.py", "django.db.backends.utils", "_execute", "                return self.cursor.execute(sql, params)", true},
}

var rumFrames = []frame{
	{"static/js/main.5f3c9a1e.js", "https://shop.example.com/static/js/main.5f3c9a1e.js", "", "e.placeOrder", "", false},
	{"static/js/main.5f3c9a1e.js", "https://shop.example.com/static/js/main.5f3c9a1e.js", "", "t.reduce", "", false},
	{"static/js/cart.0c1d7b42.chunk.js", "https://shop.example.com/static/js/cart.0c1d7b42.chunk.js", "", "n.total", "", false},
	{"static/js/vendors.9be0d3f7.chunk.js", "https://shop.example.com/static/js/vendors.9be0d3f7.chunk.js", "", "Object.useEffect", "", true},
	{"static/js/vendors.9be0d3f7.chunk.js", "https://shop.example.com/static/js/vendors.9be0d3f7.chunk.js", "", "<anonymous>", "", true},
}

var (
	serviceNames = []string{"checkout", "cart", "payment", "catalogue", "search", "shipping", "customers", "recommendations", "stock", "mail"}
	routes       = []struct{ method, route, path, query string }{
		{"GET", "/api/products", "/api/products", "page=3&sort=price"},
		{"GET", "/api/products/{id}", "/api/products/48211", ""},
		{"POST", "/api/carts/{id}/lines", "/api/carts/7d41/lines", ""},
		{"POST", "/api/orders", "/api/orders", "confirm=true"},
		{"GET", "/api/orders/{id}", "/api/orders/902317", ""},
		{"PUT", "/api/customers/{id}/address", "/api/customers/5512/address", ""},
		{"GET", "/api/search", "/api/search", "q=lamp&limit=20"},
		{"GET", "/healthz", "/healthz", ""},
	}
	statements = []struct{ name, sql string }{
		{"SELECT FROM products", "SELECT id, name, price, stock FROM products WHERE category = $1 AND price < $2 ORDER BY price LIMIT 20"},
		{"SELECT FROM carts", "SELECT c.id, l.product_id, l.quantity, l.price FROM carts c JOIN lines l ON l.cart_id = c.id WHERE c.customer_id = $1"},
		{"INSERT INTO orders", "INSERT INTO orders (id, customer_id, total, currency, placed_at) VALUES ($1, $2, $3, $4, now()) RETURNING id"},
		{"UPDATE stock", "UPDATE stock SET reserved = reserved + $2 WHERE product_id = $1 AND available - reserved >= $2"},
		{"DELETE FROM lines", "DELETE FROM lines WHERE cart_id = $1 AND product_id = $2"},
	}
	calls     = []struct{ method, host, path string }{{"GET", "stock.example.internal", "/v2/stock/48211"}, {"POST", "payment.example.internal", "/v1/authorizations"}, {"GET", "customers.example.internal", "/v1/customers/5512"}, {"POST", "mail.example.internal", "/v1/messages"}}
	redisKeys = []string{"GET session:8f14e45f", "HGETALL cart:7d41", "SETEX page:products:3", "INCR rate:5512"}
	templates = []string{"orders/show.html", "products/list.html", "cart/summary.html"}
	failures  = []struct{ kind, module, message string }{
		{"IllegalStateException", "java.lang", "cart 7d41 was checked out by another request"},
		{"TimeoutError", "shop.payment", "payment.example.internal did not answer within 3000 ms"},
		{"ConnectionRefusedError", "net", "connect ECONNREFUSED 10.3.0.14:5432"},
		{"ValidationError", "shop.orders", "quantity: want 1 to 99, got 120"},
		{"DeadlineExceeded", "context", "context deadline exceeded while reading stock of product 48211"},
		{"TypeError", "", "Cannot read properties of undefined (reading 'price')"},
	}
	userAgents = []string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:136.0) Gecko/20100101 Firefox/136.0",
		"okhttp/4.12.0",
	}
	neighbours = []string{"    // the price may have changed since", "    }", "", "    log.debug('loaded', id)", "    if (lines.isEmpty()) {", "        return nothing", "    const started = now()", "    metrics.count('orders')"}
)

// serviceName is the name of service i.
func serviceName(i int) string {
	name := serviceNames[i%len(serviceNames)]
	if n := i / len(serviceNames); n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	return name
}

func one[T any](rng *rand.Rand, of []T) *T { return &of[rng.IntN(len(of))] }
