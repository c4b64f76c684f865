package scenario

import (
	"reflect"

	"github.com/grafana/sobek"
	"github.com/grafana/sobek/ast"
	"github.com/grafana/sobek/file"
	"github.com/grafana/sobek/unistring"
)

// thrower is the name of a function that no script can name: it has a blank.
const thrower = "throw at"

// A thrown is a value that the script threw, and where.
type thrown struct {
	value sobek.Value
	at    string
}

// rememberThrows makes the script say where it throws: the interpreter knows places of errors, and
// none of other values. Each throw of X becomes one of thrower(X), which returns X.
func (e *engine) rememberThrows(program *ast.Program) error {
	eachThrow(reflect.ValueOf(program.Body), func(s *ast.ThrowStatement) {
		s.Argument = &ast.CallExpression{
			Callee:          &ast.Identifier{Name: unistring.NewFromString(thrower), Idx: s.Throw},
			LeftParenthesis: s.Throw, ArgumentList: []ast.Expression{s.Argument}, RightParenthesis: s.Throw,
		}
	})
	return e.vm.GlobalObject().DefineDataProperty(thrower, e.vm.ToValue(func(c sobek.FunctionCall) sobek.Value {
		e.thrown = thrown{c.Argument(0), e.at()}
		return c.Argument(0)
	}), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_FALSE)
}

// eachThrow calls f with each statement that throws, the innermost first.
func eachThrow(v reflect.Value, f func(*ast.ThrowStatement)) {
	switch v.Kind() {
	case reflect.Interface:
		eachThrow(v.Elem(), f)
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*file.File]() {
			return
		}
		eachThrow(v.Elem(), f)
		if s, ok := v.Interface().(*ast.ThrowStatement); ok {
			f(s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachThrow(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachThrow(v.Field(i), f)
			}
		}
	}
}
