package rules

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/result"
)

// ParameterGroup holds a plan as commands for a managed server, on which nobody may SET GLOBAL. NAME stands
// for the name of the server's own parameter group.
type ParameterGroup struct {
	Apply  []string `json:"apply"`
	Revert []string `json:"revert"`
}

// perCall bounds the parameters of one command of the AWS CLI.
const perCall = 20

// RenderGroup renders a plan's steps; none of them needs a restart.
func RenderGroup(p result.LivePlan) ParameterGroup {
	var to, back []string
	for _, step := range p.Steps {
		for _, c := range step.Changes {
			to = append(to, parameter(c.Name, c.Value))
			back = append(back, parameter(c.Name, c.Before))
		}
	}
	slices.Reverse(back)
	return ParameterGroup{Apply: groupCommands(to), Revert: groupCommands(back)}
}

func groupCommands(parameters []string) []string {
	list := []string{}
	for some := range slices.Chunk(parameters, perCall) {
		list = append(list, "aws rds modify-db-parameter-group --db-parameter-group-name NAME --parameters "+strings.Join(some, " "))
	}
	return list
}

func parameter(name, value string) string {
	return fmt.Sprintf("'ParameterName=%s,ParameterValue=%s,ApplyMethod=immediate'", name, mycnf.Plain(name, value))
}
