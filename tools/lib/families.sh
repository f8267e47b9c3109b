# Sourced by the scripts of tools/ that compare families of models with llama.cpp.

families=(gemma3 gpt-oss qwen35 deepseek2)

# family_options NAME sets `options`, what make_model needs for a family besides a shape and a type, and `type`, the
# type of its weights. The experts of a layer together have about as many weights as the feed-forward of the 0.5b shape.
family_options() {
  local experts=(--experts 16 --experts-used 4 --expert-ffn 320)
  options=(--arch "$1")
  type=q8_0
  case $1 in
    gemma3) options+=(--window 512) ;;
    gpt-oss)
      options+=(--untied --window 128 "${experts[@]}")  # llama.cpp loads no tied gpt-oss
      type=mxfp4 ;;
    deepseek2) options+=(--head-dim 64 --dense-layers 1 "${experts[@]}") ;;
  esac
}
