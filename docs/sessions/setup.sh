# What a new user sees first.
#== nothing
#@ mv .config/taiwa/config.yaml saved.yaml
#! fails
taiwa say "Hello"
#== set
taiwa config set model http://127.0.0.1:8080/v1#qwen
taiwa config show
taiwa keys list
taiwa models
#== apps
taiwa apps list
taiwa apps new tutor
taiwa apps check tutor
#== render
taiwa apps render translate -p target_lang=English "文(sentence)です。"
