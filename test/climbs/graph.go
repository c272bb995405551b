package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// call is one place of the code that calls into another package.
type call struct {
	at       string // file and line
	from, to string // packages, by their paths below internal
	callee   string
	climbs   bool
}

// program holds the packages below a path, with their code; what they import of others is known by its types.
type program struct {
	ssa  *ssa.Program
	own  string // what the paths of its packages begin with
	root string // the folder that files are named in
}

// load reads the packages of a module whose paths begin with own.
func load(dir, own string) (program, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return program{}, err
	}
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes |
		packages.NeedSyntax | packages.NeedTypesInfo
	list, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, own+"...")
	if err != nil {
		return program{}, err
	}
	for _, p := range list {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
	}
	prog, _ := ssautil.Packages(list, ssa.InstantiateGenerics)
	prog.Build()
	return program{prog, own, root}, err
}

// method finds a method of a type's pointer.
func (p program) method(path, typ, name string) (*ssa.Function, error) {
	if pkg := p.ssa.ImportedPackage(path); pkg != nil && pkg.Type(typ) != nil {
		found, _, _ := types.LookupFieldOrMethod(types.NewPointer(pkg.Type(typ).Type()), true, pkg.Pkg, name)
		if method, ok := found.(*types.Func); ok {
			return p.ssa.FuncValue(method), nil
		}
	}
	return nil, fmt.Errorf("%s has no method %s of %s", path, name, typ)
}

// follow lists the calls between packages that a function leads to.
func (p program) follow(root *ssa.Function, f floors) (calls []call, err error) {
	reached, graph := p.reached(root)
	seen := map[call]bool{}
	for from := range reached {
		for _, e := range edges(from, graph) {
			for _, to := range unwrapped(e.to, graph) {
				c := call{at: p.at(e.pos), from: p.room(from), to: p.room(to)}
				if c.from == c.to || c.from == "" || c.to == "" || seen[c] { // one interface, and several of that package have it
					continue
				}
				seen[c] = true
				high, err1 := f.of(c.from)
				low, err2 := f.of(c.to)
				err = errors.Join(err, err1, err2)
				c.climbs, c.callee = low < high, to.String()
				calls = append(calls, c)
			}
		}
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Or(strings.Compare(a.at, b.at), strings.Compare(a.to, b.to)) })
	return calls, err
}

// reached returns what a function leads to. Which functions a value or an interface may stand for is told by
// what can be reached alone, so it is asked until no more falls away.
func (p program) reached(root *ssa.Function) (map[*ssa.Function]bool, *callgraph.Graph) {
	all := ssautil.AllFunctions(p.ssa)
	for {
		graph := vta.CallGraph(all, nil)
		left := reach(root, graph)
		if len(left) == len(all) {
			return left, graph
		}
		all = left
	}
}

// reach walks one graph from a function, itself among what it returns.
func reach(root *ssa.Function, graph *callgraph.Graph) map[*ssa.Function]bool {
	found, todo := map[*ssa.Function]bool{root: true}, []*ssa.Function{root}
	for len(todo) > 0 {
		from := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range edges(from, graph) {
			if !found[e.to] {
				found[e.to] = true
				todo = append(todo, e.to)
			}
		}
	}
	return found
}

// edge is one call of a function.
type edge struct {
	to  *ssa.Function
	pos token.Pos
}

// edges are the calls that a function makes, and what it hands to a function of others, who call it back.
func edges(from *ssa.Function, graph *callgraph.Graph) (list []edge) {
	if node := graph.Nodes[from]; node != nil {
		for _, e := range node.Out {
			if c := e.Site.Common(); c.IsInvoke() && c.Value.Type().String() == "error" {
				continue // what an error says was said where it was made
			}
			list = append(list, edge{e.Callee.Func, e.Pos()})
		}
	}
	for _, block := range from.Blocks {
		for _, in := range block.Instrs {
			if c, ok := in.(ssa.CallInstruction); ok && foreign(c.Common()) {
				list = append(list, handed(c)...)
			}
		}
	}
	return list
}

// handed are the functions among the arguments of a call.
func handed(c ssa.CallInstruction) (list []edge) {
	for _, arg := range c.Common().Args {
		if closure, ok := arg.(*ssa.MakeClosure); ok {
			arg = closure.Fn
		}
		if f, ok := arg.(*ssa.Function); ok {
			list = append(list, edge{f, c.Pos()})
		}
	}
	return list
}

// foreign tells whether a call goes to code that is not at hand.
func foreign(c *ssa.CallCommon) bool {
	f := c.StaticCallee()
	return f != nil && len(f.Blocks) == 0
}

// unwrapped is a function itself, or of one that the compiler made, as for the value p.show, what it calls in
// the end.
func unwrapped(f *ssa.Function, graph *callgraph.Graph) (list []*ssa.Function) {
	seen := map[*ssa.Function]bool{}
	var look func(*ssa.Function)
	look = func(f *ssa.Function) {
		switch node := graph.Nodes[f]; {
		case seen[f]:
		case !wrapper(f):
			list = append(list, f)
		case node != nil:
			seen[f] = true
			for _, e := range node.Out {
				look(e.Callee.Func)
			}
		}
	}
	look(f)
	return list
}

func wrapper(f *ssa.Function) bool { return f.Pkg == nil && f.Synthetic != "" && f.Origin() == nil }

// room is the package that a function belongs to, below internal; "" for others' code.
func (p program) room(f *ssa.Function) string {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if o := f.Origin(); o != nil {
		f = o
	}
	if f.Pkg == nil {
		return ""
	}
	path, ok := strings.CutPrefix(f.Pkg.Pkg.Path(), p.own)
	if !ok {
		return ""
	}
	return path
}

// at names a place by its file below the root, and its line.
func (p program) at(pos token.Pos) string {
	where := p.ssa.Fset.Position(pos)
	if name, err := filepath.Rel(p.root, where.Filename); err == nil {
		where.Filename = name
	}
	return fmt.Sprintf("%s:%d", where.Filename, where.Line)
}

// sorted are the keys of a map, in order.
func sorted(arrows map[[2]string]int) [][2]string {
	return slices.SortedFunc(maps.Keys(arrows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}
