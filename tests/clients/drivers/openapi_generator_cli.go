// Calls of the client that openapi-generator generates for Go. Prints what they gave as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	tollhouse "example/program/client"
)

type object = map[string]any

var (
	model    = os.Getenv("MODEL")
	admin    = signedIn("ADMIN_KEY")
	customer = signedIn("KEY")
	api      = newClient()
)

func newClient() *tollhouse.APIClient {
	configuration := tollhouse.NewConfiguration()
	configuration.Servers[0].URL = os.Getenv("BASE_URL")
	return tollhouse.NewAPIClient(configuration)
}

func signedIn(variable string) context.Context {
	return context.WithValue(context.Background(), tollhouse.ContextAccessToken, os.Getenv(variable))
}

// have returns what a call gave. The error of the interface is in its failure.
func have[T any](given T, _ any, failure error) T {
	if failure != nil {
		log.Fatal(failure, codeOf(failure))
	}
	return given
}

func codeOf(failure error) string {
	var told *tollhouse.GenericOpenAPIError
	if errors.As(failure, &told) {
		if envelope, ok := told.Model().(tollhouse.Envelope); ok {
			return envelope.Error.Code
		}
	}
	return ""
}

func text(content string) tollhouse.ChatMessage {
	message := tollhouse.NewChatMessage("user")
	message.SetContent(tollhouse.ChatMessageContent{String: &content})
	return *message
}

func asked(request *tollhouse.ChatRequest) tollhouse.CompletionMessage {
	call := api.InferenceAPI.CreateChatCompletion(customer).ChatRequest(*request)
	return have(call.Execute()).Choices[0].Message
}

func chat() any {
	request := tollhouse.NewChatRequest(model, []tollhouse.ChatMessage{text("Say it.")})
	return asked(request).Content.Get().String
}

func tools() any {
	request := tollhouse.NewChatRequest(model, []tollhouse.ChatMessage{text("What is the weather?")})
	function := object{"name": "get_weather", "parameters": object{"type": "object"}}
	request.SetTools([]object{{"type": "function", "function": function}})
	return asked(request).ToolCalls[0]["function"].(object)["name"]
}

func responses() any {
	said := "Say it."
	request := tollhouse.NewResponseRequest(model, tollhouse.ResponseRequestInput{String: &said})
	made := have(api.InferenceAPI.CreateResponse(customer).ResponseRequest(*request).Execute())
	return made.Output[0]["content"].([]any)[0].(object)["text"]
}

func count() any {
	messages := []object{{"role": "user", "content": "How much is it?"}}
	request := tollhouse.NewCountTokens(model, messages)
	made := have(api.InferenceAPI.CountTokens(customer).CountTokens(*request).Execute())
	return made.InputTokens > 0
}

func models() any {
	found := have(api.ModelsAPI.ListModels(customer).Execute())
	one := have(api.ModelsAPI.RetrieveModel(customer, model).Execute())
	isListed := false
	for _, each := range found.Data {
		isListed = isListed || each.Id == one.Id
	}
	return []any{one.Id, isListed}
}

func policies() any {
	draft := tollhouse.NewCreatePolicy("Names", "Does the text name a person?")
	create := api.PoliciesAPI.CreatePolicy(admin).IdempotencyKey(unique("policy"))
	made := have(create.CreatePolicy(*draft).Execute())
	change := tollhouse.NewEditPolicy(made.Revision)
	change.SetMode("enforcing")
	edit := api.PoliciesAPI.EditPolicy(admin, made.Id).EditPolicy(*change)
	edited := have(edit.Execute())
	_, _, stale := edit.Execute()
	publish := tollhouse.NewPublishPolicy(edited.Revision)
	publish.SetRefusesUntilJudged(true)
	published := have(api.PoliciesAPI.PublishPolicy(admin, made.Id).PublishPolicy(*publish).Execute())
	pause := tollhouse.NewPausePolicy(published.Revision)
	paused := have(api.PoliciesAPI.PausePolicy(admin, made.Id).PausePolicy(*pause).Execute())
	return []any{made.State, edited.Revision, codeOf(stale), published.State, paused.State}
}

func keys() any {
	create := api.ProjectKeysAPI.CreateProjectKey(admin, os.Getenv("PROJECT"))
	create = create.IdempotencyKey(unique("key"))
	create = create.CreateProjectKey(*tollhouse.NewCreateProjectKey("search"))
	first, again := have(create.Execute()), have(create.Execute())
	return []any{first.Id == again.Id, first.GetValue() == again.GetValue()}
}

func costs() any {
	report := api.ReportsAPI.ReportCosts(admin).StartTime(time.Now().Unix() - 8*86_400)
	first := have(report.Execute())
	second := have(report.Page(first.GetNextPage()).Execute())
	return []any{len(first.Data), first.HasMore, second.HasMore}
}

func unique(name string) string { return fmt.Sprintf("%s-%d", name, time.Now().UnixNano()) }

func main() {
	found, failure := json.Marshal(object{
		"chat": chat(), "tools": tools(), "responses": responses(), "count": count(),
		"models": models(), "policies": policies(), "keys": keys(), "costs": costs(),
	})
	if failure != nil {
		log.Fatal(failure)
	}
	fmt.Println(string(found))
}
