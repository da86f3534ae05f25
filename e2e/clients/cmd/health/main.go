// SPDX-License-Identifier: Apache-2.0

// Command health says what GitOps tools make of objects: `health SCRIPT.lua < LIST.json` prints for each object of a
// List its kind, its name, what kstatus says (Flux, kpt) and what Argo CD says with the script.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: health SCRIPT.lua < LIST.json")
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var list unstructured.UnstructuredList
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		return fmt.Errorf("read a List from standard input: %w", err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		kstatus, err := status.Compute(object)
		if err != nil {
			return fmt.Errorf("%s: kstatus: %w", object.GetName(), err)
		}
		argo, err := argoHealth(string(script), object)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", object.GetName(), os.Args[1], err)
		}
		fmt.Println(object.GetKind(), object.GetName(), kstatus.Status, argo)
	}
	return nil
}

// argoHealth does what Argo CD does: it judges an object that is being deleted itself, and runs the script for the others
// with the global obj, without the libraries that reach out of the interpreter.
func argoHealth(script string, object *unstructured.Unstructured) (string, error) {
	if object.GetDeletionTimestamp() != nil {
		return "Progressing", nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returned no table")
	}
	if answer.RawGetString("message").Type() != lua.LTString {
		return "", fmt.Errorf("the script returned no message")
	}
	switch health := answer.RawGetString("status").String(); health {
	case "Healthy", "Progressing", "Degraded", "Suspended":
		return health, nil
	default:
		return "", fmt.Errorf("the script returned the status %q", health)
	}
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, child := range value {
			table.RawSetString(key, toLua(state, child))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, child := range value {
			table.Append(toLua(state, child))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		return lua.LNil
	}
}
